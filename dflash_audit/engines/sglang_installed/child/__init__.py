"""The child of `sglang@installed`: imports SGLang, and records what it does with a draft.

    python -m dflash_audit.engines.sglang_installed.child CAPABILITY

It claims a card of that compute capability (times ten), imports SGLang and writes
its version to standard output. Then each line of standard input is a job, and
each gets a line of JSON in answer. When standard input ends, so does the child.
"""
