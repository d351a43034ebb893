"""The load of a draft, replayed: every tensor by name into a parameter, a drop or a refusal.

Source: vLLM 0.33.0 `load_weights` of `model_executor/models/qwen3_dflash.py`,
`qwen3_dspark.py`, `qwen3_xpress.py`, `lilicorr.py`, `laguna_dflash.py` and
`models/beam/nvidia/dflash2.py`; `WeightsMapper` and `AutoWeightsLoader` in
`model_executor/models/utils.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from dflash_audit.copying import incoming, unopened
from dflash_audit.engines.vllm import architectures, gemma4
from dflash_audit.engines.vllm.weight_loaders import place
from dflash_audit.loadplan import Fill, LoadPlan, Shard, Slot, empty_plan
from dflash_audit.refusal import Refused
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.sources.tensors import as_tensors
from dflash_audit.tree import Tree

CACHE_SCALES: Final = (
    (r"\.kv_scale$", r".attn.k_scale"),
    (r"\.self_attn\.[kv]_proj\.([kv])_scale$", r".self_attn.attn.\1_scale"),
    (r"\.self_attn\.qk(?:qk)?v_proj\.([kv])_scale$", r".self_attn.attn.\1_scale"),
    (r"\.mixer\.[kv]_proj\.([kv])_scale$", r".mixer.attn.\1_scale"),
    (r"\.self_attn\.q\.scale$", r".self_attn.attn.q_scale"),
    (r"\.self_attn\.([kv])_cache\.scale$", r".self_attn.attn.\1_scale"),
    (r"(?<!\.attn)\.([qkv])_scale$", r".attn.\1_scale"),
    (r"(?<!\.attn)\.([qkv])_zero_point$", r".attn.\1_zero_point"),
)
"""What a quantized draft's names of cache scales become (`QuantizationConfig.get_cache_scale_mapper`)."""

FP8_SCALES: Final[Mapping[str, str]] = {
    ".k_proj.output_scale": ".attn.k_scale",
    ".v_proj.output_scale": ".attn.v_scale",
    ".q_proj.output_scale": ".attn.q_scale",
    ".self_attn.prob_output_scale": ".self_attn.attn.prob_scale",
}
"""What the fp8 method renames beside them."""

NOT_EXPECTED: Final = (
    ".q_scale", ".k_scale", ".v_scale", ".q_zero_point", ".k_zero_point", ".v_zero_point",
)  # fmt: skip
"""Parameters that a quantized draft's checkpoint may hold in vain, beside any `.bias`."""

ROTARY: Final = (
    "rotary_pos_emb.inv_freq", "rotary_emb.inv_freq", "rotary_emb.cos_cached", "rotary_emb.sin_cached",
)  # fmt: skip

RENAMED: Final = (
    ("midlayer", "layers.0"),
    ("encoder.output_norm_enc", "hidden_norm"),
    ("encoder.fc", "fc"),
)

STACKED: Final[tuple[tuple[str, str, Shard], ...]] = (
    (".q_proj", ".qkv_proj", "q"),
    (".k_proj", ".qkv_proj", "k"),
    (".v_proj", ".qkv_proj", "v"),
    (".gate_proj", ".gate_up_proj", 0),
    (".up_proj", ".gate_up_proj", 1),
)
"""Source: `hf_to_vllm_mapper` of the models."""

FUSED_CLASSES: Final = ("QKVParallelLinear", "MergedColumnParallelLinear")
"""Modules that take what comes for them themselves, whatever its name."""

XPRESS: Final[Mapping[str, str]] = {
    "mlp.gate_proj.weight": "mlp_gate.weight",
    "mlp.up_proj.weight": "mlp_up.weight",
    "mlp.down_proj.weight": "mlp_down.weight",
    "mix.L": "mix_L",
}
"""Source: `XPressRefinerHead.HYBRID_KEY_MAP`."""


class Drafted(NamedTuple):
    """What a load depends on beside the tree.

    `method` is the quantization method, None for a dense draft; the vocabularies are the
    draft's inputs', its outputs' and its target's.
    """

    model_class: str
    method: str | None
    vocab_size: int
    draft_vocab_size: int
    target_vocab_size: int
    own_head: bool


class Load(NamedTuple):
    """The load of one built draft."""

    drafted: Drafted
    tree: Tree
    plan: LoadPlan
    children: Mapping[str, frozenset[str]]

    def put(self, tensor: Tensor, slot: Slot, shard: Shard | None) -> None:
        """Run the parameter's weight loader; note the fill, or raise its refusal."""
        held = incoming(tensor)
        copies = place(slot.module, slot.parameter, held, shard)
        self.plan.fill(tensor, Fill(slot, shard, held.dtype, copies))


def load(drafted: Drafted, tree: Tree, whole: Tree, tensors: tuple[Tensor, ...]) -> LoadPlan:
    """Replay `load_weights` of the draft's class on `tensors`, in their order.

    `whole` is the tree that a single rank would build.
    """
    replay = Load(drafted, tree, empty_plan(tree, whole, tensors), _children(tree))
    before = REFUSALS.get(drafted.model_class)
    if before is not None:
        for reason in before(replay, tensors):
            replay.plan.refuse(reason)
    refused = unopened(as_tensors(tensors))
    for tensor in tensors:
        try:
            if tensor in refused:
                raise Refused(refused[tensor])
            _load_one(replay, tensor)
        except Refused as refusal:
            replay.plan.refuse(refusal.reason, tensor.name)
    if drafted.model_class == architectures.LILICORR and not replay.plan.refusals:
        _check_lilicorr(replay, tensors)
    return replay.plan


def _children(tree: Tree) -> Mapping[str, frozenset[str]]:
    """Module -> the names of those right below it."""
    found: dict[str, set[str]] = {}
    for name in tree.modules:
        if name:
            parent, _, last = name.rpartition(".")
            found.setdefault(parent, set()).add(last)
    return {name: frozenset(below) for name, below in found.items()}


def _load_one(replay: Load, tensor: Tensor) -> None:
    match replay.drafted.model_class:
        case architectures.LAGUNA:
            _load_laguna(replay, tensor)
        case architectures.GEMMA4:
            gemma4.load_one(replay.plan, tensor)
        case architectures.LILICORR:
            _load_plain(replay, tensor, tensor.name.removeprefix("model."))
        case _:
            _load_plain(replay, tensor, tensor.name)


def _load_plain(replay: Load, tensor: Tensor, name: str) -> None:
    """One tensor under the name that it has once a leading `model.` is gone where the class takes it away."""
    model_class = replay.drafted.model_class
    if model_class == architectures.LILICORR and name.startswith("lilicorr."):
        _descend(replay, tensor, f"model.{_cached(replay, name)}", "model.lilicorr", None, above="")
        return
    if model_class == architectures.BEAM:
        if not any(part in name for part in ROTARY):
            inner, shard = _stacked(name, replay)
            _descend(replay, tensor, f"model.{inner}", "model", shard, above="model.")
        return
    refiner = model_class == architectures.XPRESS and name.startswith("xpress_head.")
    masks = model_class in (architectures.DSPARK_OF_QWEN3, architectures.XPRESS)
    if "mask_hidden" in name and not masks:
        raise Refused("a DFlash checkpoint should not ship a mask_hidden weight")
    target = _outer(replay, name, refiner)
    if target is None:
        return
    mapped = _cached(replay, target)
    if _skipped(replay, mapped):
        return
    if not mapped.startswith("model."):
        _descend(replay, tensor, mapped, "", None, above="")
        return
    inner, shard = _stacked(mapped.removeprefix("model."), replay)
    _descend(replay, tensor, f"model.{inner}", "model", shard, above="model.")


def _outer(replay: Load, name: str, refiner: bool) -> str | None:
    """The name below the whole draft, None for a tensor that is passed over."""
    if "t2d" in name or (replay.drafted.model_class == architectures.XPRESS and "d2t" in name):
        return None
    if refiner:
        own = name.removeprefix("xpress_head.")
        return f"model.xpress_head.{XPRESS.get(own, own)}"
    if "d2t" in name:
        return name.replace("d2t", "draft_id_to_target_id")
    return name if "lm_head" in name else f"model.{name}"


def _skipped(replay: Load, name: str) -> bool:
    modules = replay.tree.modules
    if "mask_embedding" in name or any(part in name for part in ROTARY):
        return True
    if "model.fc" not in modules and "fc." in name:
        return True
    dspark = replay.drafted.model_class == architectures.DSPARK_OF_QWEN3
    if dspark and "confidence_head" in name and "model.confidence_head" not in modules:
        return True
    return replay.drafted.method is not None and name.endswith(".g_idx")


def _cached(replay: Load, name: str) -> str:
    """The name with its cache scale under the attention's, where the draft is quantized."""
    if replay.drafted.method is None:
        return name
    if name.endswith(("scale", "zero_point")):
        for pattern, ours in CACHE_SCALES:
            name = re.sub(pattern, ours, name)
    if replay.drafted.method == "fp8":
        for suffix, ours in FP8_SCALES.items():
            if name.endswith(suffix):
                name = name.removesuffix(suffix) + ours
    return name


def _stacked(name: str, replay: Load) -> tuple[str, Shard | None]:
    """The name inside the model, and the shard that it stands for."""
    if replay.drafted.model_class != architectures.BEAM:
        for theirs, ours in RENAMED:
            if theirs in name:
                name = re.sub(rf"(?<![A-Za-z0-9_]){re.escape(theirs)}(?=\.|\*|$)", ours, name)
    name = _cached(replay, name)
    shard: Shard | None = None
    for theirs, ours, part in STACKED:
        if theirs in name:
            name, shard = name.replace(theirs, ours, 1), part
    return name, shard


def _descend(replay: Load, tensor: Tensor, name: str, root: str, shard: Shard | None, above: str) -> None:
    """Walk from the module `root` to the parameter of that name, as `AutoWeightsLoader` does.

    Raises:
        Refused: there is none, and nothing lets such a tensor pass.
    """
    at, rest = root, name.removeprefix(f"{root}.") if root else name
    while rest:
        head, _, tail = rest.partition(".")
        here = f"{at}.{head}" if at else head
        if head in replay.children.get(at, ()):
            at, rest = here, tail
            if replay.tree.modules[at].module_class in FUSED_CLASSES:
                _fused(replay, tensor, at, rest, shard)
                return
            continue
        slot = replay.plan.slots.get(here)
        if slot is not None and not tail:
            replay.put(tensor, slot, None)
        elif _lets_pass(replay, f"{here}.{tail}" if slot is not None else here):
            return
        elif slot is not None:
            raise Refused(f"{name.removeprefix(above)} is nested in the parameter {here.removeprefix(above)}")
        else:
            raise Refused(f"there is no module or parameter named {here.removeprefix(above)!r}")
        return


def _lets_pass(replay: Load, name: str) -> bool:
    if name.endswith(".bias"):
        return True
    return replay.drafted.method is not None and name.endswith(NOT_EXPECTED)


def _fused(replay: Load, tensor: Tensor, module: str, name: str, shard: Shard | None) -> None:
    """What a fused layer does with a tensor for one of its parameters, or for none."""
    slot = replay.plan.slots.get(f"{module}.{name}")
    if slot is not None:
        replay.put(tensor, slot, shard)
    elif name != "bias":
        raise Refused(f"{module} has no parameter {name}, which the loader takes for one")


def _load_laguna(replay: Load, tensor: Tensor) -> None:
    name = tensor.name if "lm_head" in tensor.name else f"model.{tensor.name}"
    name = _cached(replay, name)
    if any(part in name for part in ROTARY) or (replay.drafted.method and name.endswith(".g_idx")):
        return
    if not name.startswith("model."):
        _descend(replay, tensor, name, "", None, above="")
        return
    slot = replay.plan.slots.get(name)
    if slot is None and "scale" in name:
        name = _laguna_scale(name)
        slot = replay.plan.slots.get(name)
        if slot is None and name.endswith(NOT_EXPECTED):
            return
    if slot is None:
        raise Refused(f"there is no parameter named {name.removeprefix('model.')!r}")
    replay.put(tensor, slot, None)


def _laguna_scale(name: str) -> str:
    """Source: `maybe_remap_kv_scale_name` in `model_executor/model_loader/weight_utils.py`."""
    for pattern, ours in CACHE_SCALES:
        if re.search(pattern, name):
            return re.sub(pattern, ours, name)
    return name


def _refuse_dspark(replay: Load, tensors: Iterable[Tensor]) -> Iterator[str]:
    """What a DSpark draft of another vocabulary than its target's must bring."""
    drafted, names = replay.drafted, [t.name for t in tensors if "t2d" not in t.name]

    def without(part: str) -> bool:
        return not any(part in name for name in names)

    if drafted.vocab_size > drafted.target_vocab_size and without("embed_tokens"):
        yield "a DSpark draft whose vocabulary is larger than its target's must include embed_tokens"
    if drafted.draft_vocab_size < drafted.target_vocab_size:
        if without("lm_head"):
            yield "a DSpark draft of a reduced vocabulary must include lm_head weights"
        if without("d2t"):
            yield "a DSpark draft of a reduced vocabulary must include a d2t mapping"


def _refuse_xpress(replay: Load, tensors: Iterable[Tensor]) -> Iterator[str]:
    del replay
    if not any(tensor.name == "xpress_head.mix.L" for tensor in tensors):
        yield "the XPress checkpoint is missing xpress_head.mix.L"


REFUSALS: Final = {architectures.DSPARK_OF_QWEN3: _refuse_dspark, architectures.XPRESS: _refuse_xpress}
"""Class -> why it refuses a checkpoint as a whole."""


def _check_lilicorr(replay: Load, tensors: Iterable[Tensor]) -> None:
    """The head, the convolutions and a head of the vocabulary must be complete, scales left out."""
    seen = {tensor.name.removeprefix("model.") for tensor in tensors}
    missing = sorted(
        name.removeprefix("model.")
        for name, slot in replay.plan.slots.items()
        if _in_lilicorr(replay, name) and name.removeprefix("model.") not in seen and not _metadata(slot)
    )
    if missing:
        replay.plan.refuse(f"the LiLiCorr checkpoint lacks {len(missing)} parameters, {missing[0]} for one")


def _in_lilicorr(replay: Load, name: str) -> bool:
    convolution = ".attention_conv." in name or ".mlp_conv." in name
    own_head = replay.drafted.own_head and name.startswith("lm_head.")
    return name.startswith("model.lilicorr.") or convolution or own_head


def _metadata(slot: Slot) -> bool:
    """Whether a parameter of a quantized linear may be absent."""
    scheme = slot.module.scheme
    if scheme is None or slot.module.linear is None or scheme.name == "UnquantizedLinearMethod":
        return False
    required = {"weight", "bias"}
    names = {parameter.name for parameter in scheme.parameters}
    if scheme.name == "ModelOptLinearMethod" and "weight_scale_2" in names:
        required |= {"weight_scale", "weight_scale_2"}
        if not any(parameter.unread for parameter in scheme.parameters):
            required.add("input_scale")
    return slot.parameter.name not in required
