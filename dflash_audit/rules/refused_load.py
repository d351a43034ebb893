"""The engine stops while it loads the weights.

A tensor has a shape or a dtype that its parameter does not take, or a check at the end of the load finds
the checkpoint incomplete. `sglang-next` also refuses a tensor whose module the draft has in another layout,
and a checkpoint that fills decoder layers and nothing of `fc`.

## Why it matters

The server stops at the first such tensor; the report names all of them, as if the load went on.

## Example

Before, the shards are spelled by the name of the fused layer, which the next release does not ask about:

    "ignore": ["re:.*gate_up_proj$"]

After, both spellings, for both versions:

    "ignore": ["re:.*gate_up_proj$", "re:.*gate_proj$", "re:.*up_proj$"]

## How to fix

If the module is built in another layout, make the ignore list and the targets of the quantization config
say what is on disk. If a shape does not fit, the sizes in config.json (heads, head_dim, layers tapped) are
not those of the checkpoint.
"""

from collections.abc import Iterator

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import fold


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding for all layers of a tensor that is refused for one reason."""
    for refusal in run.plan.refusals if run.plan else ():
        if refusal.tensor is None:
            yield _finding(run, "the checkpoint", ("the checkpoint",), refusal.reason)
    reasons = {r.tensor: r.reason for r in (run.plan.refusals if run.plan else ()) if r.tensor is not None}
    for subject, names in fold(reasons).items():
        yield _finding(run, subject, names, reasons[names[0]])


def _finding(run: EngineRun, subject: str, names: tuple[str, ...], reason: str) -> Finding:
    message = f"{run.engine} stops while it loads: {reason.rstrip('.')}."
    return Finding("refused-load", "error", run.engine, subject, message, _hint(reason), names)


def _hint(reason: str) -> str:
    if "whose parameters are" in reason:
        return "Make the ignore list and the targets of the quantization config say what is on disk."
    if "shape" in reason or "dimension" in reason:
        return "Set the sizes in config.json to those of the tensors, or export the tensors again."
    return (
        "Export the checkpoint again with all of its tensors, or mend the config key that the reason names."
    )
