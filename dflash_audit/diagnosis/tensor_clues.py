"""What the tensors of a draft tell about the keys of its config; no rule of its own.

A value is told only where all tensors of a kind agree on it.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from dflash_audit.diagnosis.sglang_draft import SELECTORS, Draft, one_an_element, whole
from dflash_audit.engines.sglang.dflash_config import DEFAULT_BLOCK_SIZE
from dflash_audit.sources.checkpoint import Tensor

INNER: Final = "dflash_config"

LAYER: Final = r"layers\.\d+\."
ANYTHING: Final = "(?s:.*)"
CODEBOOKS: Final = r"candidate_selector\.(predecessor|successor)_codebook(\.weight)?"

Value = Callable[[Tensor], int | None]


class Clue(NamedTuple):
    """What the tensors tell about a key: `evidence` says which.

    `place` is the object that holds the key, empty for the top of config.json;
    `read` what the engine reads there, None for nothing; `besides` is what the told value
    takes beside it, as the rest of a sentence.
    """

    place: str
    key: str
    told: float | bool | str | list[str]
    read: Any
    evidence: str
    besides: str = ""

    @property
    def path(self) -> str:
        return f"{self.place}.{self.key}" if self.place else self.key


class Subject(NamedTuple):
    """Keys that build one thing: its clues, what an engine does with a wrong key.

    `untold` are keys that it needs too, and that no tensor tells.
    """

    clues: Callable[[Draft], Iterator[Clue]]
    otherwise: str
    untold: tuple[str, ...] = ()


def _convolutions(draft: Draft) -> Iterator[Clue]:
    conv = LAYER + r"(attention|mlp)_conv\."
    taps = _told([tensor.shape[1] for tensor in _matching(draft, conv + "base_kernel", 3)])
    read = _count(draft.inner.get("conv_kernel_size"))
    yield from _from(draft, INNER, "conv_kernel_size", read, conv + "base_kernel", 3, _axis(1))

    def group(tensor: Tensor) -> int | None:
        groups = _quotient(tensor.shape[0], 2 * taps if taps else None)
        return _quotient(tensor.shape[1], groups)

    read = _count(draft.inner.get("conv_group_size"))
    projection = conv + r"kernel_projection\.weight"
    yield from _from(draft, INNER, "conv_group_size", read, projection, 2, group)


def _selector(draft: Draft) -> Iterator[Clue]:
    if draft.model_class in SELECTORS:
        read = _count(draft.inner.get("selector_rank"))
        yield from _from(draft, INNER, "selector_rank", read, CODEBOOKS, 2, _axis(1))


def _markov(draft: Draft) -> Iterator[Clue]:
    if not draft.dspark:
        return
    rank = _count(draft.config.get("markov_rank"))
    yield from _from(draft, "", "markov_rank", rank, r"markov_head\.markov_w1\.weight", 2, _axis(1))
    kinds = {"gate_proj": "gated", "joint_proj": "rnn", "markov_w1": "vanilla"}
    on_disk = (module for module in kinds if f"markov_head.{module}.weight" in draft.tensors)
    module = next(on_disk, None)
    if module is not None:
        kind = draft.config.get("markov_head_type")
        evidence = made_with(draft.tensors[f"markov_head.{module}.weight"])
        read = None if kind is None else str(kind).lower()
        yield Clue("", "markov_head_type", kinds[module], read, evidence)


def _vocabulary(draft: Draft) -> Iterator[Clue]:
    tables = {
        CODEBOOKS: draft.model_class in SELECTORS,
        r"markov_head\.markov_w[12]\.weight": draft.dspark,
        r"embed_proj\.2\.weight": draft.either("projector_type") == "domino",
        r"embed_tokens\.weight": draft.nemotron,
    }
    built = "|".join(table for table, builds in tables.items() if builds)
    if built:
        yield from _from(draft, "", "vocab_size", whole(draft.config.get("vocab_size")), built, 2, _axis(0))


def _domino(draft: Draft) -> Iterator[Clue]:
    parts = draft.named(rf"(prefix_gru|embed_proj)\.{ANYTHING}")
    if not parts:
        return
    yield Clue(INNER, "projector_type", "domino", draft.either("projector_type"), made_with(parts[0]))
    read = whole(draft.either("gru_hidden_dim"))
    yield from _from(draft, INNER, "gru_hidden_dim", read, r"prefix_gru\.weight_hh_l0", 2, _axis(1))
    read = whole(draft.either("emb_dim"))
    yield from _from(draft, INNER, "emb_dim", read, r"embed_proj\.0\.weight", 2, _axis(0))


def _lilicorr(draft: Draft) -> Iterator[Clue]:
    if draft.model_class != "LiLiCorrDraftModel":
        return
    place = "" if draft.given("block_size") and "block_size" not in draft.inner else INNER
    size = whole(draft.either("block_size")) or DEFAULT_BLOCK_SIZE
    slots = r"lilicorr\.slot_embedding"
    yield from _from(draft, place, "block_size", size, slots, 5, lambda tensor: tensor.shape[2] + 1)
    for key, tensor, rank, axis in (
        ("lilicorr_hidden_size", r"output_norm\.weight", 1, 0),
        ("lilicorr_candidate_topk", r"rank_embedding", 5, 3),
        ("lilicorr_num_heads", r"same_slot_bias", 1, 0),
        ("lilicorr_factor_dim", r"out_head\.weight", 2, 0),
    ):
        read = whole(draft.inner.get(key))
        yield from _from(draft, INNER, key, read, rf"lilicorr\.{tensor}", rank, _axis(axis))
    hidden = _told([t.shape[0] for t in _matching(draft, r"lilicorr\.output_norm\.weight", 1)])
    wide = r"lilicorr\.layers\.\d+\.mlp\.up_proj\.weight"
    for up in _matching(draft, wide, 2)[:1]:
        read = draft.inner.get("lilicorr_mlp_ratio")
        ratio = read if isinstance(read, int | float) and math.isfinite(read) else 0
        if hidden and int(hidden * ratio) != up.shape[0]:
            yield Clue(INNER, "lilicorr_mlp_ratio", up.shape[0] / hidden, read, made_with(up))
    names = (tensor.name.removeprefix("model.") for tensor in draft.named(rf"lilicorr\.{LAYER}{ANYTHING}"))
    layers = {name.split(".")[2] for name in names}
    if layers and layers == set(map(str, range(len(layers)))):
        read = whole(draft.inner.get("lilicorr_num_layers"))
        evidence = f"The tensors of the head are of layers 0 to {len(layers) - 1}, which is"
        yield Clue(INNER, "lilicorr_num_layers", len(layers), read, evidence)


def _biases(draft: Draft) -> Iterator[Clue]:
    read = bool(draft.config.get("attention_bias", False))
    biases = _matching(draft, LAYER + r"self_attn\.(q|k|v|o|qkv)_proj\.bias", 1)
    if biases:
        yield Clue("", "attention_bias", True, read, made_with(biases[0]), _lacking_biases(biases))
    elif _matching(draft, LAYER + r"self_attn\..*", 2):
        yield Clue(
            "", "attention_bias", False, read, "The projections of the attention have no biases, which is"
        )


BIASED: Final = {"qkv": ("q_proj", "k_proj", "v_proj"), "q": ("q_proj",), "k": ("k_proj",), "v": ("v_proj",)}
"""Projection before `_proj.bias` -> those whose bias it holds; any other its own."""


def _lacking_biases(biases: list[Tensor]) -> str:
    """The biases that the engine builds by the same key, and that are not on disk."""
    stored = {name.rpartition(".")[0].rpartition(".")[2] for name in (tensor.name for tensor in biases)}
    held = {shard for name in stored for shard in BIASED.get(name.removesuffix("_proj"), (name,))}
    lacking = [f"{name}.bias" for name in ("q_proj", "k_proj", "v_proj", "o_proj") if name not in held]
    if not lacking:
        return ""
    return (
        f", and add {' and '.join(lacking)} to each layer, as zeros, which change nothing: the engine builds"
        " what it builds of these by one key"
    )


def _sinks(draft: Draft) -> Iterator[Clue]:
    # A key for them at another place is `unread-key`.
    elsewhere = any(draft.config.get(key) for key in ("attention_sink_bias", "add_swa_attention_sink_bias"))
    sinks = _matching(draft, LAYER + r"self_attn\.attention_sink_bias", 1)
    if sinks and not elsewhere and not draft.nemotron:
        read = draft.inner.get("attention_sink_bias") is True
        yield Clue(INNER, "attention_sink_bias", True, read, made_with(sinks[0]))


def _sizes(draft: Draft) -> Iterator[Clue]:
    q_norm = LAYER + r"self_attn\.q_norm\.weight"
    head = _told([tensor.shape[0] for tensor in _matching(draft, q_norm, 1)])
    for key, name, rank, value in (
        ("hidden_size", r"norm\.weight", 1, _axis(0)),
        ("head_dim", q_norm, 1, _axis(0)),
        ("num_attention_heads", LAYER + r"self_attn\.q_proj\.weight", 2, _rows(head)),
        ("num_key_value_heads", LAYER + r"self_attn\.k_proj\.weight", 2, _rows(head)),
        ("intermediate_size", LAYER + r"mlp\.gate_proj\.weight", 2, _rows(1)),
    ):
        yield from _from(draft, "", key, whole(draft.config.get(key)), name, rank, value)
    yield from _depth(draft)


def _depth(draft: Draft) -> Iterator[Clue]:
    names = (tensor.name.removeprefix("model.") for tensor in draft.named(LAYER + ANYTHING))
    found = {int(name.split(".")[1]) for name in names}
    if found and found == set(range(len(found))):
        evidence = f"The tensors are of layers 0 to {max(found)}, which is"
        read = whole(draft.config.get("num_hidden_layers"))
        yield Clue("", "num_hidden_layers", len(found), read, evidence)


def _from(
    draft: Draft, place: str, key: str, read: Any, pattern: str, rank: int, value: Value
) -> Iterator[Clue]:
    """The clue of a key by the tensors of `rank` dimensions whose whole name matches, all of them."""
    tensors = _matching(draft, pattern, rank)
    values = [value(tensor) for tensor in tensors]
    told = _told(values)
    if told is not None:
        yield Clue(place, key, told, read, made_with(tensors[0]))


def _told(values: list[int | None]) -> int | None:
    """What all agree on; None where they do not, or there are none."""
    return values[0] if len(set(values)) == 1 else None


def _matching(draft: Draft, pattern: str, rank: int) -> list[Tensor]:
    return [tensor for tensor in draft.named(pattern) if len(tensor.shape) == rank]


def made_with(tensor: Tensor) -> str:
    """The evidence of a tensor by its name and shape, up to the key that it was made with."""
    return f"{tensor.name} {list(tensor.shape)} was made with"


def _axis(axis: int) -> Value:
    return lambda tensor: tensor.shape[axis]


def _rows(divisor: int | None) -> Value:
    """Rows of a tensor that holds one number an element, in parts of `divisor`."""
    return lambda tensor: _quotient(tensor.shape[0], divisor) if one_an_element(tensor) else None


def _quotient(size: int, divisor: int | None) -> int | None:
    return size // divisor if divisor and size % divisor == 0 else None


def _count(value: Any) -> int | None:
    """A count as the engine reads it, which takes zero for none."""
    return whole(value) or None


OTHER_SIZES: Final = "builds the draft in other sizes than its tensors have"

SUBJECTS: Final[tuple[Subject, ...]] = (
    Subject(_convolutions, "builds no convolutions, or others than the tensors are for"),
    Subject(
        _selector,
        "builds no selector, or another than the tensors are for",
        ("selector_top_k",),
    ),
    Subject(_markov, "builds no Markov head, or another than the tensors are for"),
    Subject(_vocabulary, OTHER_SIZES),
    Subject(
        _domino,
        "builds no Domino projector, or another than the tensors are for",
        ("shift_label", "pure_draft_prefix_len"),
    ),
    Subject(_lilicorr, "builds another LiLiCorr head than the tensors are for"),
    Subject(_biases, "builds these biases, or none, by this key alone"),
    Subject(_sinks, "builds no attention sinks, and drops these"),
    Subject(_sizes, OTHER_SIZES),
)
