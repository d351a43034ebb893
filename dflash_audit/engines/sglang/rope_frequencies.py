"""The angles of a draft's rotary embedding, a number a rotated pair.

Source: SGLang 0.5.23 `srt/layers/rotary_embedding/`: `get_rope` in `factory.py`,
the classes that it builds in `base.py`, `rope_variant.py`, `yarn.py`, `mrope.py`.
A draft's positions have one axis, for which a multimodal embedding is the plain
one.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from dflash_audit import forward
from dflash_audit.engines.sglang.rope import Rope
from dflash_audit.forward import Frequencies, LongFrequencies


def rope_of(rope: Rope, head_dim: int) -> forward.Rope:
    """What the embedding turns, and how fast; `rope` is one that `read_rope` returned."""
    kind = rope.kind
    if kind == "longrope":
        return _longrope(rope)
    if kind == "proportional":
        return _proportional(rope, head_dim)
    frequencies = Frequencies(_plain(rope)) if kind is None else TYPES[kind](rope)
    return forward.Rope(rope.rotary_dim, rope.neox, frequencies)


def _plain(rope: Rope, base: float | None = None) -> tuple[float, ...]:
    base = rope.base if base is None else base
    return tuple(_inverse(base, index / rope.rotary_dim) for index in range(0, rope.rotary_dim, 2))


def _inverse(base: float, exponent: float) -> float:
    """1 / base**exponent, with torch's infinity and NaN where Python has no float for it."""
    try:
        power = base**exponent
    except OverflowError:
        return 0.0
    return math.nan if isinstance(power, complex) else _over(1.0, power)


def _over(dividend: float, divisor: float) -> float:
    return dividend / divisor if divisor else math.inf


def _default(rope: Rope) -> Frequencies:
    return Frequencies(_plain(rope))


def _linear(rope: Rope) -> Frequencies:
    """Positions divided by the factor; of several the first, whose table comes first."""
    factor = rope.get("factor", 1.0)
    factor = factor[0] if isinstance(factor, list) else factor
    return Frequencies(tuple(_over(frequency, factor) for frequency in _plain(rope)))


def _dynamic(rope: Rope) -> Frequencies:
    exponent = rope.rotary_dim / (rope.rotary_dim - 2)
    if rope.has("alpha"):
        return Frequencies(_plain(rope, rope.base * rope.number("alpha", 1.0) ** exponent))
    factor = rope.number("factor", 1.0)
    length = rope.max_position * factor
    stretched = factor * length / rope.max_position - (factor - 1)
    return Frequencies(_plain(rope, rope.base * stretched**exponent))


def _yarn(rope: Rope) -> Frequencies:
    factor, attention = rope.number("factor", 1.0), rope.number("attn_factor", 1)
    scales = [rope.get(key) for key in ("mscale", "mscale_all_dim")]
    magnitude = _magnitude(factor, 1)
    if None not in scales:
        magnitude = _magnitude(factor, scales[0]) / _magnitude(factor, scales[1])
    return Frequencies(_blended(rope, factor, bool(rope.get("truncate", True))), magnitude * attention)


def _deepseek_yarn(rope: Rope) -> Frequencies:
    factor, attention = rope.number("factor", 1.0), rope.number("attn_factor", 1)
    scales = float(rope.get("mscale", 1)), float(rope.get("mscale_all_dim", 0))
    magnitude = _magnitude(factor, scales[0]) / _magnitude(factor, scales[1])
    return Frequencies(_blended(rope, factor, truncate=True), magnitude * attention)


def _magnitude(factor: float, scale: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0


def _blended(rope: Rope, factor: float, truncate: bool) -> tuple[float, ...]:
    """Fast frequencies as they are, slow ones divided by the factor, a ramp between them."""
    low, high = _ramp(rope, truncate)
    weight = rope.number("extrapolation_factor", 1)

    def blend(index: int, frequency: float) -> float:
        kept = (1 - min(max((index - low) / (high - low), 0.0), 1.0)) * weight
        return _over(frequency, factor) * (1 - kept) + frequency * kept

    return tuple(blend(index, frequency) for index, frequency in enumerate(_plain(rope)))


def _ramp(rope: Rope, truncate: bool) -> tuple[float, float]:
    """The pairs between which the ramp lies, by the turns that they make over the original length."""
    length = rope.number("original_max_position_embeddings", rope.max_position)

    def pair(turns: float) -> float:
        return rope.rotary_dim * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(rope.base))

    low, high = pair(rope.number("beta_fast", 32)), pair(rope.number("beta_slow", 1))
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rope.rotary_dim - 1)
    return low, high + 0.001 if low == high else high


def _llama3(rope: Rope) -> Frequencies:
    factor = rope.number("factor", 1.0)
    low, high = rope.number("low_freq_factor", 1.0), rope.number("high_freq_factor", 4.0)
    length = rope.number("original_max_position_embeddings", rope.max_position)

    def stretch(frequency: float) -> float:
        turns = length * frequency / (2 * math.pi)
        if turns > high:
            return frequency
        if turns < low:
            return _over(frequency, factor)
        smooth = 0.0 if low == high else (turns - low) / (high - low)
        return _over((1 - smooth) * frequency, factor) + smooth * frequency

    return Frequencies(tuple(map(stretch, _plain(rope))))


def _longrope(rope: Rope) -> forward.Rope:
    original = rope.number("original_max_position_embeddings", rope.max_position)
    scale = rope.max_position / original
    magnitude = 1.0 if scale <= 1.0 else math.sqrt(1 + math.log(scale) / math.log(original))

    def rescaled(length: str) -> Frequencies:
        factors, plain = rope.get(f"{length}_factor"), _plain(rope)
        factors = factors if isinstance(factors, list) else [factors]
        factors = factors * len(plain) if len(factors) == 1 else factors
        plain = plain * len(factors) if len(plain) == 1 else plain
        own = rope.get(f"{length}_mscale")
        inverse = tuple(map(_over, plain, factors))
        return Frequencies(inverse, magnitude if own is None else own)

    return forward.Rope(
        rope.rotary_dim, rope.neox, rescaled("short"), LongFrequencies(original, rescaled("long"))
    )


def _proportional(rope: Rope, head_dim: int) -> forward.Rope:
    """Gemma 4's: pairs lie across the whole head, and those past the rotary width stand still."""
    turning = rope.rotary_dim // 2
    inverse = [_inverse(rope.base, 2 * index / head_dim) for index in range(turning)]
    still = [0.0] * (head_dim // 2 - turning)
    return forward.Rope(head_dim, rope.neox, Frequencies((*inverse, *still)))


TYPES: Final[Mapping[Any, Callable[[Rope], Frequencies]]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "deepseek_yarn": _deepseek_yarn,
    "llama3": _llama3,
}
