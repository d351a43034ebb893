"""What two engines do differently with one draft."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis.vllm_draft import is_vllm
from dflash_audit.engine_run import EngineRun
from dflash_audit.loadplan import LoadPlan

SETTLED_BY_VLLM: Final = {"class": "config", "quant_config": "build"}
"""Stage -> the one that vLLM settles it with: it looks for a draft's class while it reads the config, and
reads what quantizes it while it builds. Which fault of several it meets first is no matter of the draft."""


def differences(profile: EngineRun, live: EngineRun) -> Iterator[str]:
    """A line each, in the order in which an engine goes; what follows from a refusal is not compared."""
    yield from _unlike("class", profile.model_class, live.model_class)
    yield from _unlike("quantization", profile.quantization, live.quantization)
    yield from _unlike("stops at", _stage(profile), _stage(live))
    yield from _unlike("flags", _flags(profile), _flags(live))
    if profile.tree is not None and live.tree is not None:
        yield from _entries("parameter", _parameters(profile), _parameters(live))
    if profile.plan is None or live.plan is None:
        return
    told, by_profile = _refused(live.plan), _refused(profile.plan)
    if len(live.plan.tensors) < len(profile.plan.tensors):
        # It stopped for good, with one tensor in its hands or none that is known.
        told -= {None}
        by_profile &= told
    if told - {None} and by_profile - {None}:
        # What is missed in the whole is told by who looks for it first.
        told, by_profile = told - {None}, by_profile - {None}
    yield from _unlike("refuses", by_profile, told)
    if profile.refusal is None and live.refusal is None:
        yield from _entries("tensor", _fills(profile.plan), _fills(live.plan))
        yield from _entries("missing", profile.plan.missing(), live.plan.missing())
        yield from _entries("took", _resized(profile.plan), _resized(live.plan))


def _stage(run: EngineRun) -> str:
    stage = run.refusal.stage if run.refusal else "nothing"
    return SETTLED_BY_VLLM.get(stage, stage) if is_vllm(run.engine) else stage


def _flags(run: EngineRun) -> list[str]:
    return [needed.flag for needed in run.flags]


def _parameters(run: EngineRun) -> Mapping[str, Any]:
    assert run.tree is not None
    return {
        name: (
            list(parameter.shape),
            parameter.dtype,
            module.module_class,
            module.prefix,
            module.scheme.name if module.scheme else None,
        )
        for name, module, parameter in run.tree.parameters()
    }


def _refused(plan: LoadPlan) -> set[str | None]:
    return {refusal.tensor for refusal in plan.refusals}


def _fills(plan: LoadPlan) -> Mapping[str, Any]:
    return {t.name: sorted((fill.target, fill.dtype) for fill in plan.fills.get(t, [])) for t in plan.tensors}


def _resized(plan: LoadPlan) -> Mapping[str, int]:
    return {resized.slot.name: resized.took for resized in plan.resized()}


def _entries(what: str, profile: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys((*profile, *live)):
        yield from _unlike(f"{what} {name}", profile.get(name), live.get(name))


def _unlike(what: str, profile: Any, live: Any) -> Iterator[str]:
    if profile != live:
        yield f"{what}: {profile} by the profile, {live} by the engine"
