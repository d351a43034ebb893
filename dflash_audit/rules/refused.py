"""The engine stops: at the config, the class, the quantization config, the build or the load.

One rule a stage. A draft that is refused is not served at all; what stands in
the message is what the engine says.
"""

from collections.abc import Iterator
from typing import Final

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import fold

HINTS: Final = {
    "config": "Mend config.json: the engine reads it before anything else.",
    "class": "Set `architectures` to a draft class that this engine has, DFlashDraftModel for one.",
    "quant_config": "Mend quantization_config, or remove it if the checkpoint is dense.",
    "build": "Mend the named field; a lost dflash_config can be taken from the original draft.",
    "load": None,
}


def at_config(run: EngineRun) -> Iterator[Finding]:
    """The config class, or the choice of a quantization method, raises."""
    return _before_load(run, "config", "refused-config", "config.json")


def at_class(run: EngineRun) -> Iterator[Finding]:
    """No class of the engine has a name of `architectures`."""
    return _before_load(run, "class", "unknown-class", "architectures")


def at_quant_config(run: EngineRun) -> Iterator[Finding]:
    """The quantization method does not take its config."""
    return _before_load(run, "quant_config", "refused-quantization", "quantization_config")


def at_build(run: EngineRun) -> Iterator[Finding]:
    """A constructor of the draft raises."""
    return _before_load(run, "build", "refused-build", run.model_class or "the draft")


def at_load(run: EngineRun) -> Iterator[Finding]:
    """`load_weights` raises; later tensors that it would refuse as well are told of too."""
    if run.plan is None:
        return
    for refusal in run.plan.refusals:
        if refusal.tensor is None:
            yield _finding(run, "refused-load", "the checkpoint", refusal.reason, None)
    reasons = {refusal.tensor: refusal.reason for refusal in run.plan.refusals if refusal.tensor}
    for subject, names in fold(reasons).items():
        yield Finding(
            rule="refused-load",
            severity="error",
            engine=run.engine,
            subject=subject,
            message=f"{run.engine} stops while it loads: {reasons[names[0]]}.",
            hint=_load_hint(reasons[names[0]]),
            subjects=names,
        )


def _before_load(run: EngineRun, stage: str, rule: str, subject: str) -> Iterator[Finding]:
    if run.refusal is not None and run.refusal.stage == stage:
        yield _finding(run, rule, subject, run.refusal.reason, HINTS[stage])


def _finding(run: EngineRun, rule: str, subject: str, reason: str, hint: str | None) -> Finding:
    message = f"{run.engine} does not start with this draft: {reason.rstrip('.')}."
    return Finding(rule, "error", run.engine, subject, message, hint, (subject,))


def _load_hint(reason: str) -> str:
    if "whose parameters are" in reason:
        return (
            "The module is built in another layout than its tensor has: make the ignore list and the"
            " targets of the quantization config say what is on disk."
        )
    return "The tensor's shape or dtype does not fit the config's sizes: mend the config, or export again."
