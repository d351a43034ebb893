"""The load of a draft, replayed: every tensor by name into a parameter, a drop or a refusal.

Source: SGLang 0.5.23 `load_weights` of `srt/models/dflash.py`,
`srt/models/lilicorr.py` and `srt/models/dspark.py`; what the next release
refuses is in `_undroppable` and `_check_projection`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from dflash_audit.copying import incoming, unopened
from dflash_audit.engines.sglang.draft import BuiltDraft
from dflash_audit.engines.sglang.profile import Profile
from dflash_audit.engines.sglang.weight_loaders import place
from dflash_audit.how_many import how_many
from dflash_audit.loadplan import Fill, LoadPlan, Shard, Slot, empty_plan
from dflash_audit.refusal import Refused
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.sources.tensors import as_tensors
from dflash_audit.tree import FUSED, Tree

STACKED: Final[tuple[tuple[str, str, Shard], ...]] = tuple(
    (fused, name, shard) for fused, shards in FUSED.items() for name, shard in shards.items()
)

VENDOR_NAMES: Final[Mapping[str, str]] = {
    "encoder.fc.weight": "fc.weight",
    "encoder.output_norm_enc.weight": "hidden_norm.weight",
}
"""`_VENDOR_ENCODER_ALIASES`."""

VENDOR_MODULES: Final[Mapping[str, str]] = {"encoder.fc": "fc", "encoder.output_norm_enc": "hidden_norm"}
VENDOR: Final = re.compile(r"encoder\.(fc|output_norm_enc)(?=\.)")

NEVER_REFUSED: Final = (
    ".bias",
    ".inv_freq",
    ".cos_cached",
    ".sin_cached",
    ".input_scale",
    ".output_scale",
    ".k_scale",
    ".v_scale",
    ".kv_scale",
)
"""Parameter names that the next release drops without a word even where the module exists."""

DOMINO_PREFIXES: Final = ("prefix_gru.", "embed_proj.")
DOMINO_WEIGHTS: Final = (
    "embed_proj.0.weight",
    "embed_proj.2.weight",
    "prefix_gru.weight_hh_l0",
    "prefix_gru.weight_ih_l0",
)

DSPARK_SKIPPED: Final = ("lm_head.", "rotary_emb.")

WITHOUT_INPUT_SCALE: Final = "ModelOptNvFp4A16LinearMethod"


class Load(NamedTuple):
    """The load of one built draft under one profile."""

    built: BuiltDraft
    profile: Profile
    plan: LoadPlan

    def put(self, tensor: Tensor, slot: Slot, shard: Shard | None) -> None:
        """Run the parameter's weight loader; note the fill, or raise its refusal."""
        held = incoming(tensor)
        copies = place(slot.module, slot.parameter, held, shard)
        self.plan.fill(tensor, Fill(slot, shard, held.dtype, copies))


def load(built: BuiltDraft, whole: Tree, profile: Profile, tensors: tuple[Tensor, ...]) -> LoadPlan:
    """Replay `load_weights` of the draft's class on `tensors`, in their order.

    `whole` is the tree that a single rank would build.
    """
    replay = Load(built, profile, empty_plan(built.tree, whole, tensors))
    tensors = tuple(_opened(replay, tensors))
    if built.draft_class.dspark:
        _load_dspark(replay, tensors)
    else:
        _load_base(replay, tensors)
    # After a refusal these checks would only tell of its consequences.
    if built.draft_class.lilicorr and not replay.plan.refusals:
        _check_lilicorr_head(replay, tensors)
        _check_convolutions(replay, tensors)
    return replay.plan


def _opened(replay: Load, tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    """The tensors that safetensors hands over; the load dies on another."""
    refused = unopened(as_tensors(tensors))
    for tensor in tensors:
        if tensor in refused:
            replay.plan.refuse(refused[tensor], tensor.name)
        else:
            yield tensor


def _load_base(replay: Load, tensors: Iterable[Tensor]) -> None:
    for tensor in tensors:
        try:
            _load_one(replay, tensor)
        except Refused as refusal:
            replay.plan.refuse(refusal.reason, tensor.name)
    if replay.plan.refusals:
        return
    if replay.built.draft.parsed.domino:
        missing = [name for name in DOMINO_WEIGHTS if name not in replay.plan.filled()]
        if missing:
            replay.plan.refuse(f"the Domino projector lacks {', '.join(missing)}")
    if replay.profile.refuses_drops:
        _check_projection(replay)


def _load_one(replay: Load, tensor: Tensor) -> None:
    name = tensor.name
    if replay.profile.refuses_drops:
        name = _undroppable(replay, name)
    stray = replay.built.draft.parsed.domino is None and replay.profile.refuses_stray_domino
    if stray and name.removeprefix("model.").startswith(DOMINO_PREFIXES):
        raise Refused("the checkpoint holds a Domino projector, which projector_type does not announce")
    for fused, part, shard in STACKED:
        if f".{part}." in name:
            slot = _resolve(replay.plan, name.replace(part, fused))
            if slot is not None:
                replay.put(tensor, slot, shard)
                return
    slot = _resolve(replay.plan, name)
    if slot is None:
        return
    if slot.name.endswith("fc.weight"):
        _check_fc(replay, slot, tensor)
    if slot.name.startswith(DOMINO_PREFIXES) and tensor.shape != slot.parameter.shape:
        raise Refused(
            f"{slot.name} has the shape {list(slot.parameter.shape)}, the tensor {list(tensor.shape)}"
        )
    replay.put(tensor, slot, None)


def _resolve(plan: LoadPlan, name: str) -> Slot | None:
    """The parameter that a name reaches: itself, without or with `model.`, or by its vendor name."""
    if name in plan.slots:
        return plan.slots[name]
    other = name.removeprefix("model.") if name.startswith("model.") else f"model.{name}"
    return plan.slots.get(other) or plan.slots.get(VENDOR_NAMES.get(name, ""))


def _check_fc(replay: Load, slot: Slot, tensor: Tensor) -> None:
    """Refuse an `fc.weight` that was made for another number of tapped features."""
    draft = replay.built.draft
    expected = slot.parameter.shape
    logical = (draft.hidden_size, draft.num_taps * draft.hidden_size)
    if tensor.shape == expected or (draft.nemotron and tensor.shape == logical):
        return
    raise Refused(
        f"fc.weight has the shape {list(tensor.shape)}, {list(expected)} is needed for"
        f" {draft.num_taps} tapped layers of {draft.hidden_size}"
    )


def _undroppable(replay: Load, name: str) -> str:
    """The name under which a tensor goes on; refused where its module has no such parameter."""
    module, leaf = _owner(replay, name)
    own = replay.plan.modules.get(module) if module else None
    if own is not None and leaf not in {p.name for p in own.parameters} and not name.endswith(NEVER_REFUSED):
        has = ", ".join(sorted(p.name for p in own.parameters)) or "none"
        raise Refused(f"{name} is for the module {module}, whose parameters are {has}")
    return f"{module}.{leaf}" if VENDOR.match(name) else name


def _owner(replay: Load, name: str) -> tuple[str, str]:
    """The draft's module that a checkpoint name is for, and the parameter's own name."""
    vendor = VENDOR.match(name)
    plain = name if vendor is None else VENDOR_MODULES[vendor[0]] + name[vendor.end() :]
    module, _, leaf = plain.removeprefix("model.").rpartition(".")
    head, _, last = module.rpartition(".")
    for fused, shards in FUSED.items():
        if last in shards and f"{head}.{fused}" in replay.plan.modules:
            return f"{head}.{fused}", leaf
    return module, leaf


def _check_projection(replay: Load) -> None:
    filled = replay.plan.filled()
    layers = any(name.startswith("layers.") for name in filled)
    if layers and not any(name.startswith("fc.") for name in filled):
        replay.plan.refuse("the checkpoint fills decoder layers, but no parameter of fc")


def _load_dspark(replay: Load, tensors: Iterable[Tensor]) -> None:
    backbone: list[Tensor] = []
    markov: list[Tensor] = []
    for tensor in tensors:
        plain = tensor.name.removeprefix("model.")
        borrowed = plain.startswith("embed_tokens.") and not replay.built.draft.nemotron
        # The default server builds no confidence head and passes its tensors over.
        if plain.startswith(DSPARK_SKIPPED) or borrowed or tensor.name.startswith("confidence_head."):
            continue
        (markov if tensor.name.startswith("markov_head.") else backbone).append(tensor)
    _load_base(replay, backbone)
    for tensor in markov:
        try:
            _load_markov(replay, tensor)
        except Refused as refusal:
            replay.plan.refuse(refusal.reason, tensor.name)


def _load_markov(replay: Load, tensor: Tensor) -> None:
    slot = replay.plan.slots.get(tensor.name)
    if slot is None:
        raise Refused(f"{tensor.name} is no parameter of the Markov head that the config announces")
    replay.put(tensor, slot, None)


def _check_lilicorr_head(replay: Load, tensors: Iterable[Tensor]) -> None:
    """The LiLiCorr head must be complete and hold nothing else (`check_head_weight_coverage`)."""
    seen = {name for name in _plain_names(tensors) if name.startswith("lilicorr.")}
    expected = {name: slot for name, slot in replay.plan.slots.items() if name.startswith("lilicorr.")}
    missing = sorted(name for name, slot in expected.items() if name not in seen and not _optional(slot))
    unexpected = sorted(seen - expected.keys())
    if missing:
        replay.plan.refuse(
            f"the LiLiCorr head lacks {how_many(len(missing), 'parameter')}, {missing[0]} for one"
        )
    elif unexpected:
        replay.plan.refuse(
            f"the LiLiCorr head has no parameter for {how_many(len(unexpected), 'tensor')},"
            f" {unexpected[0]} for one"
        )


def _optional(slot: Slot) -> bool:
    scheme = slot.module.scheme
    return slot.parameter.name == "input_scale" and scheme is not None and scheme.name == WITHOUT_INPUT_SCALE


def _check_convolutions(replay: Load, tensors: Iterable[Tensor]) -> None:
    """Convolution tensors must be the built ones, all of them (`check_conv_weight_coverage`)."""
    seen = {
        name for name in _plain_names(tensors) if _is_convolution(name) and not name.startswith("lilicorr.")
    }
    expected = {name for name in replay.plan.slots if _is_convolution(name)}
    if seen == expected:
        return
    odd = sorted(seen ^ expected)
    replay.plan.refuse(
        f"the checkpoint holds {len(seen)} convolution tensors where {len(expected)} are built,"
        f" {odd[0]} is on one side only"
    )


def _is_convolution(name: str) -> bool:
    return ".attention_conv." in name or ".mlp_conv." in name


def _plain_names(tensors: Iterable[Tensor]) -> Iterable[str]:
    return (tensor.name.removeprefix("model.") for tensor in tensors)
