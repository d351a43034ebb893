"""The command that serves a draft.

Source: SGLang 0.5.23 `srt/arg_groups/fields/spec.py`. A DFlash server's block
size is the whole verify window, a DSpark server's the tokens proposed in it.
"""

import shlex
from collections.abc import Iterable

from dflash_audit.engine_run import FlagNeeded
from dflash_audit.engines.sglang.draft import BuiltDraft


def serve_command(built: BuiltDraft, draft: str, flags: Iterable[FlagNeeded]) -> tuple[str, ...]:
    """A shell command, an option each, with TARGET to be filled in; `draft` is the checkpoint's id."""
    algorithm = "DSPARK" if built.draft_class.dspark else "DFLASH"
    return (
        "python -m sglang.launch_server --model-path TARGET",
        f"--speculative-algorithm {algorithm}",
        f"--speculative-draft-model-path {shlex.quote(draft)}",
        f"--speculative-{algorithm.lower()}-block-size {built.draft.parsed.block_size}",
        *(needed.flag for needed in flags),
    )
