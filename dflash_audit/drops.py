"""Which tensors that go nowhere are excused, and by what."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from dflash_audit.engine_run import EngineRun
from dflash_audit.loadplan import LoadPlan
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.tree import FUSED, Module


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


def excuse(run: EngineRun, tensor: Tensor) -> str | None:
    """Why a tensor that goes nowhere may, None where it may not."""
    for row in EXCUSES:
        if not row.pattern.fullmatch(tensor.name):
            continue
        if row.classes and run.model_class not in row.classes:
            continue
        if not run.engine.startswith(row.engine):
            continue
        if row.of_module and run.tree is not None and owner(run.tree.modules, tensor.name) is None:
            continue
        return row.reason
    return None


def dropped(run: EngineRun) -> Iterator[Tensor]:
    """Tensors that go nowhere and that nothing excuses, those left out that the load refuses."""
    for tensor in _lost(run.plan):
        if excuse(run, tensor) is None:
            yield tensor


def ignored(run: EngineRun) -> Iterator[tuple[Tensor, str]]:
    """Tensors that go nowhere with an excuse, and that."""
    for tensor in _lost(run.plan):
        reason = excuse(run, tensor)
        if reason is not None:
            yield tensor, reason


def _lost(plan: LoadPlan | None) -> Iterator[Tensor]:
    if plan is None:
        return
    refused = {refusal.tensor for refusal in plan.refusals}
    for tensor in plan.tensors:
        if tensor not in plan.fills and tensor.name not in refused:
            yield tensor


FUSED_OF: Final = {shard: fused for fused, shards in FUSED.items() for shard in shards}
"""Name of a shard -> that of the module it is fused into."""


def owner(modules: Mapping[str, Module], name: str) -> Module | None:
    """The draft's module that a checkpoint name is for, fused ones under their shards' names."""
    plain = name.removeprefix("model.").rpartition(".")[0]
    if not plain:
        return None
    for module in (plain, f"model.{plain}"):
        head, _, last = module.rpartition(".")
        fused = FUSED_OF.get(last)
        found = (modules.get(f"{head}.{fused}") if fused else None) or modules.get(module)
        if found is not None:
            return found
    return None
