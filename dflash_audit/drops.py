"""Which tensors that go nowhere are excused, and by what."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from dflash_audit.engine_run import EngineRun
from dflash_audit.kinds import Kind, kind_of_each
from dflash_audit.loadplan import LoadPlan
from dflash_audit.once import once
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.sources.tensors import as_tensors


class Excuse(NamedTuple):
    """A kind of tensor that a draft may carry in vain.

    `pattern` matches its whole name. With `of_module` the name must be for a
    module that the draft has, with `classes` the draft must be one of those, with
    `engine` the name of the engine must begin so.
    """

    pattern: re.Pattern[str]
    reason: str
    of_module: bool = False
    classes: frozenset[str] = frozenset()
    engine: str = ""


SGLANG: Final = "sglang"
VLLM: Final = "vllm"

DSPARK: Final = frozenset(("Qwen3DSparkModel", "LingDSparkModel", "DSparkDraftModel"))

EXCUSES: Final = (
    Excuse(re.compile(r".*\.(inv_freq|cos_cached|sin_cached)"), "rotary caches are computed anew"),
    Excuse(
        re.compile(r".*\.(k_scale|v_scale|kv_scale|input_scale|output_scale)"),
        "the layer is built without this scale",
        of_module=True,
    ),
    Excuse(re.compile(r"(model\.)?lm_head\..*"), "the draft borrows the target's head", engine=SGLANG),
    Excuse(
        re.compile(r"(model\.)?embed_tokens\..*"), "the draft borrows the target's embedding", engine=SGLANG
    ),
    Excuse(
        re.compile(r"confidence_head\..*"),
        "the default server verifies whole blocks and builds no confidence head",
        classes=DSPARK,
        engine=SGLANG,
    ),
    Excuse(re.compile(r"confidence_head\..*"), "the config enables no confidence head", engine=VLLM),
    Excuse(re.compile(r".*t2d.*"), "a draft's tokens are mapped by d2t alone", engine=VLLM),
    Excuse(re.compile(r".*\.g_idx"), "this engine knows no order by activations", engine=VLLM),
    Excuse(
        re.compile(r".*\.[qkv]_(scale|zero_point)"),
        "the attention is built without this scale",
        engine=VLLM,
    ),
)
"""Source: SGLang 0.5.23 `load_weights` of `srt/models/dflash.py` and `srt/models/dspark.py`
(`_DSPARK_SKIPPED_WEIGHT_PREFIXES`, `build_confidence_head`); a Nemotron 3.5 draft has its own
`embed_tokens`, which is then loaded and needs no excuse. vLLM 0.33.0 `load_weights` of
`model_executor/models/qwen3_dflash.py` and `qwen3_dspark.py`, and `get_checkpoint_weight_mapper`
of `model_executor/layers/quantization/base_config.py`."""


@once
def excuses(run: EngineRun) -> Mapping[Tensor, str]:
    """Tensor that goes nowhere, and may -> why."""
    if run.plan is None:
        return {}
    tensors = as_tensors(run.plan.tensors)
    rows: dict[Kind, list[Excuse]] = {}
    found: dict[Tensor, str] = {}
    for tensor, kind in zip(tensors, kind_of_each(tensors), strict=True):
        if tensor in run.plan.fills:
            continue
        if kind not in rows:
            rows[kind] = [row for row in EXCUSES if row.pattern.fullmatch(tensor.name) and _holds(row, run)]
        for row in rows[kind]:
            if not row.of_module or _has_module(run, tensor):
                found[tensor] = row.reason
                break
    return found


def _holds(row: Excuse, run: EngineRun) -> bool:
    """Whether an excuse is one for this engine, and for drafts of this class."""
    return run.engine.startswith(row.engine) and (not row.classes or run.model_class in row.classes)


def _has_module(run: EngineRun, tensor: Tensor) -> bool:
    return run.tree is None or run.tree.modules.owner(tensor.name) is not None


@once
def dropped(run: EngineRun) -> tuple[Tensor, ...]:
    """Tensors that go nowhere and that nothing excuses, those left out that the load refuses."""
    found = excuses(run)
    return tuple(tensor for tensor in _lost(run.plan) if tensor not in found)


def ignored(run: EngineRun) -> Iterator[tuple[Tensor, str]]:
    """Tensors that go nowhere with an excuse, and that."""
    found = excuses(run)
    for tensor in _lost(run.plan) if found else ():
        if tensor in found:
            yield tensor, found[tensor]


def _lost(plan: LoadPlan | None) -> Iterator[Tensor]:
    if plan is None:
        return
    refused = {refusal.tensor for refusal in plan.refusals}
    for tensor in plan.tensors:
        if tensor not in plan.fills and tensor.name not in refused:
            yield tensor
