"""The rotary embedding of a draft: it holds no weights, but its constructor can refuse.

Source: SGLang 0.5.23 `srt/models/dflash.py` (`DFlashAttention`),
`srt/utils/hf_transformers/common.py` (`get_rope_config`), and `get_rope` with
the classes that it builds in `srt/layers/rotary_embedding/`. Every class
computes its table of angles at once, so what cannot be computed is refused.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from dflash_audit.engines.sglang.conversions import Config, integer, real
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.torch_numbers import number, positions, scalar

SUPERSEDED: Final = ("rope_dim", "partial_rotary_factor", "mrope_section", "mrope_interleaved")
"""What a `rope_dim` makes the attention forget (`_ROPE_DIM_SUPERSEDED_KEYS`)."""

MROPE_AXES: Final = 3


class Rope(NamedTuple):
    """What `get_rope` is asked for; `scaling` is None for the plain embedding."""

    base: Any
    rotary_dim: int
    max_position: int
    neox: bool
    scaling: Mapping[str, Any] | None

    @property
    def kind(self) -> Any:
        """The type of the scaling, None for the plain embedding."""
        return None if self.scaling is None else self.scaling.get("rope_type", self.scaling.get("type"))

    def get(self, key: str, default: Any = None) -> Any:
        """A value of `scaling` as it is."""
        return default if self.scaling is None else self.scaling.get(key, default)

    def has(self, key: str) -> bool:
        return self.scaling is not None and key in self.scaling

    def number(self, key: str, default: float) -> float:
        """A value of `scaling` that the engine calculates with in Python."""
        return number(self.get(key, default), key)

    def scalar(self, key: str, default: float) -> float:
        """A value of `scaling` by which the engine multiplies or divides a tensor."""
        return scalar(self.get(key, default), key)


def base_of(config: Config) -> Any:
    """The base of the angles, as the config has it."""
    parameters = config.get("rope_parameters")
    base = config.get("rope_theta", 10000)
    return parameters.get("rope_theta", base) if isinstance(parameters, Mapping) else base


def read_rope(config: Config, head_dim: int) -> Rope:
    """The rope that the attention is built with.

    Raises:
        Refused: a factor or size is no number or out of range, or the type is unknown or lacks a key.
        NotModelled: the type is one that no draft is known to use.
    """
    scaling = config.get("rope_parameters")
    if scaling is None:
        scaling = config.get("rope_scaling")
    base = base_of(config)
    factor = real(config.get("partial_rotary_factor", 1.0), "partial_rotary_factor")
    if scaling is not None and not isinstance(scaling, Mapping):
        raise Refused(f"the rope parameters must be an object, got {scaling!r}")
    rotary_dim = head_dim
    if scaling is not None and "rope_dim" in scaling:
        rotary_dim, factor = integer(scaling["rope_dim"], "rope_dim"), 1.0
        scaling = {key: value for key, value in scaling.items() if key not in SUPERSEDED}
    if factor < 1.0:
        rotary_dim = integer(rotary_dim * factor, "partial_rotary_factor")
    neox = bool(config.get("rope_is_neox_style", config.get("is_neox_style", True)))
    max_position = integer(config.get("max_position_embeddings", 32768), "max_position_embeddings")
    rope = Rope(base, rotary_dim, max_position, neox, scaling)
    _check(rope)
    return rope


def _check(rope: Rope) -> None:
    # The engine keeps its embeddings in a table by all of their parameters.
    for value in (rope.base, *(rope.scaling or {}).values()):
        if not _hashable(tuple(value) if isinstance(value, list) else value):
            raise Refused(f"the rope parameter {value!r} is neither a number nor a list of numbers")
    if rope.scaling is None:
        _default(rope)
        return
    kind = rope.kind
    if not isinstance(kind, str) or kind not in TYPES:
        raise Refused(f"the rope type {kind!r} is not known")
    TYPES[kind](rope)


def _hashable(value: Any) -> bool:
    return all(map(_hashable, value)) if isinstance(value, tuple) else not isinstance(value, list | Mapping)


def _frequencies(rope: Rope) -> None:
    scalar(rope.base, "rope_theta")
    _width(rope)


def _width(rope: Rope) -> None:
    if rope.rotary_dim < 0:
        raise Refused(f"the rotary width must not be negative, got {rope.rotary_dim}")


def _default(rope: Rope) -> None:
    _frequencies(rope)
    positions(rope.max_position)


def _default_or_sections(rope: Rope) -> None:
    if rope.has("mrope_section"):
        _default(rope)
        _sections(rope)
    elif rope.get("use_fope", False):
        raise NotModelled("a Fourier rotary embedding is not replayed")
    else:
        _default(rope)


def _sections(rope: Rope) -> None:
    """The sections of a multimodal embedding, which are stretched to half the rotary width."""
    if rope.get("video_rope", False):
        raise NotModelled("a rotary embedding for video is not replayed")
    sections = rope.get("mrope_section")
    if not sections:
        return
    if not isinstance(sections, list):
        raise Refused(f"mrope_section must be a list, got {sections!r}")
    total = sum(number(section, "mrope_section") for section in sections)
    if len(sections) != MROPE_AXES:
        raise Refused(f"mrope_section must have {MROPE_AXES} sections, got {sections}")
    stretched = total != rope.rotary_dim // 2
    laned = rope.get("mrope_interleaved_glm", False)
    counted = sections[1:] if rope.get("mrope_interleaved", False) else sections
    if not stretched and not laned and any(isinstance(section, float) for section in counted):
        raise Refused(f"mrope_section must hold integers, got {sections}")


def _linear(rope: Rope) -> None:
    factors = rope.get("factor", 1.0)
    _frequencies(rope)
    if isinstance(factors, float):
        factors = [factors]
    # A factor that JSON writes without a point is taken for a list, which it is not.
    if not isinstance(factors, list) or not factors:
        raise Refused(f"a linear rope needs a factor with a decimal point, got {factors!r}")
    for factor in factors:
        positions(rope.max_position * number(factor, "factor"))


def _dynamic(rope: Rope) -> None:
    # The stretched base is a float, whatever integer it is made of.
    number(rope.base, "rope_theta")
    _width(rope)
    if rope.rotary_dim == 2:
        raise Refused("a dynamic rope divides by the rotary width less 2, which is 0")
    if rope.has("alpha"):
        alpha = rope.number("alpha", 1.0)
        _power(alpha, rope.rotary_dim / (rope.rotary_dim - 2))
        positions(rope.max_position)
        return
    factor = rope.number("factor", 1.0)
    if rope.max_position == 0:
        raise Refused("a dynamic rope divides by max_position_embeddings, which is 0")
    positions(rope.max_position * factor)


def _power(base: float, exponent: float) -> None:
    try:
        _ = base**exponent
    except (ZeroDivisionError, OverflowError) as error:
        raise Refused(f"the rope parameters give {base}**{exponent}: {error}") from error


def _yarn(rope: Rope) -> None:
    factor = rope.scalar("factor", 1.0)
    scales = [rope.get(key) for key in ("mscale", "mscale_all_dim")]
    if rope.has("mrope_section"):
        given = [key for key in ("mscale", "mscale_all_dim") if rope.has(key)]
        if given and not rope.get("video_rope", False):
            raise Refused(f"a multimodal rope of type yarn takes no {given[0]}")
        _sections(rope)
    elif None not in scales and factor > 1:
        _ = [number(scale, "mscale") for scale in scales]
    rope.number("attn_factor", 1)
    _yarn_table(rope, factor, bool(rope.get("truncate", True)))


def _deepseek_yarn(rope: Rope) -> None:
    factor = rope.scalar("factor", 1.0)
    for key, default in (("mscale", 1), ("mscale_all_dim", 0)):
        real(rope.get(key, default), key)
    rope.number("attn_factor", 1)
    _yarn_table(rope, factor, truncate=True)


def _yarn_table(rope: Rope, factor: float, truncate: bool) -> None:
    _frequencies(rope)
    length = rope.number("original_max_position_embeddings", rope.max_position)
    for key, default in (("beta_fast", 32), ("beta_slow", 1)):
        try:
            bound = math.log(length / (rope.number(key, default) * 2 * math.pi)) / (2 * math.log(rope.base))
            if truncate:
                math.floor(rope.rotary_dim * bound)
        except (ValueError, ZeroDivisionError, OverflowError) as error:
            raise Refused(f"no {key} of a yarn rope can be found over {length} positions: {error}") from error
    rope.scalar("extrapolation_factor", 1)
    if rope.rotary_dim % 2 and rope.rotary_dim > 3:
        raise Refused(f"a yarn rope needs an even rotary width, got {rope.rotary_dim}")
    positions(length * factor)


def _llama3(rope: Rope) -> None:
    _default(rope)
    rope.scalar("factor", 1.0)
    low, high = rope.scalar("low_freq_factor", 1.0), rope.number("high_freq_factor", 4.0)
    rope.scalar("original_max_position_embeddings", rope.max_position)
    if low == 0 or high == 0:
        raise Refused("the frequency factors of a llama3 rope must not be 0")
    if isinstance(low, bool) and low != high:
        raise Refused("torch subtracts no boolean, which low_freq_factor is")


def _longrope(rope: Rope) -> None:
    if not rope.neox:
        raise Refused("a longrope supports the neox style alone")
    for key in ("short_factor", "long_factor"):
        if not rope.has(key):
            raise Refused(f"the rope type longrope needs {key}")
    original = rope.number("original_max_position_embeddings", rope.max_position)
    if original == 0 or (rope.max_position > original > 0 and math.log(original) == 0):
        raise Refused(f"original_max_position_embeddings {original} divides nothing")
    _frequencies(rope)
    widths = {_rescaled(rope, key) for key in ("short_factor", "long_factor")}
    if len(widths) > 1:
        raise Refused("short_factor and long_factor are of different lengths")
    for key in ("short_mscale", "long_mscale"):
        if rope.get(key) is not None:
            rope.scalar(key, 1.0)
    positions(original)
    positions(rope.max_position)


def _rescaled(rope: Rope, key: str) -> int:
    """How many frequencies are left after they are multiplied by a list of factors."""
    factors, width = rope.get(key), -(-rope.rotary_dim // 2)
    if not isinstance(factors, list):
        number(factors, key)
        return width
    _ = [number(factor, key) for factor in factors]
    if len(factors) != width and 1 not in (len(factors), width):
        raise Refused(f"{key} has {len(factors)} factors for {width} frequencies")
    return width if len(factors) == 1 else len(factors)


TYPES: Final[Mapping[str, Callable[[Rope], None]]] = {
    "default": _default_or_sections,
    "linear": _linear,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "deepseek_yarn": _deepseek_yarn,
    "llama3": _llama3,
    "longrope": _longrope,
    "proportional": _default,
}
