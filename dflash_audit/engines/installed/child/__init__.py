"""What the children of the live engines have in common; only a child's process imports any of it.

    python -m dflash_audit.engines.sglang_installed.child CAPABILITY

A child claims a card of that compute capability (times ten), imports its package and
writes the version to standard output. Then each line of standard input is a job, and
each gets a line of JSON in answer. When standard input ends, so does the child.

`conversation` holds the lines, `card` makes the claim, `no_remote_code` keeps code of a
checkpoint out, `attempt` takes one draft through its stages, `watch` notes its load and
`built` what was built.
"""
