"""The rotary embedding of a draft: it holds no weights, but its constructor can refuse.

Source: vLLM 0.33.0 `model_executor/layers/rotary_embedding/__init__.py` (`get_rope`), and the classes that
it builds, each of which computes its table of angles at once: what cannot be computed is refused.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from dflash_audit.engines.vllm.fields import Config
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.torch_numbers import number, positions, scalar

DEFAULT_BASE: Final = 10000
MULTIMODAL_FACTOR: Final = 4
"""So many times the positions has the table of a multimodal embedding (`mrope_positions_factor`)."""


class Rope(NamedTuple):
    """What `get_rope` is asked for; `max_position` is None where nobody looked it up."""

    parameters: Mapping[str, Any]
    width: int
    max_position: int | None
    neox: bool

    @property
    def base(self) -> Any:
        return self.parameters.get("rope_theta", DEFAULT_BASE)

    def get(self, key: str, default: Any = None) -> Any:
        return self.parameters.get(key, default)

    def number(self, key: str, default: float | None = None) -> float:
        """A parameter that the engine calculates with in Python."""
        return number(self.get(key, default), key)

    def scalar(self, key: str, default: float | None = None) -> float:
        """A parameter by which the engine multiplies or divides a tensor."""
        return scalar(self.get(key, default), key)


MOST_POSITIONS: Final = 2**63 - 1
"""A length that `torch.arange` still takes."""

UNSCALED: Final = ("su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling")
"""Types whose factor does not lengthen the context. Source: `config/model.py`, `_get_and_verify_max_len`."""


def check_context(config: Config) -> None:
    """Refuse a longest context of no tokens, and a factor by which it cannot be multiplied.

    Source: `config/model.py`, `ModelConfig.validate_model_config_after` beside the above.
    """
    length = config.get("max_position_embeddings")
    factor = _context_factor(config.get("rope_parameters"))
    if not isinstance(length, int):
        return
    try:
        longest = int(length * float(factor))
    except (OverflowError, ValueError) as error:
        raise Refused(f"the longest context times factor is no whole number: {error}") from error
    if longest <= 0:
        times = "" if factor == 1 else f" times the factor {factor} of its rope"
        raise Refused(f"max_model_len must be above 0, got max_position_embeddings {length}{times}")


def _context_factor(parameters: Any) -> float:
    """By how much the rope lengthens the context; refused where it is no number."""
    if not isinstance(parameters, Mapping) or parameters.get("rope_type") in UNSCALED:
        return 1
    factor = parameters.get("factor")
    if "rope_type" in parameters and not isinstance(factor, int | float | None):
        raise Refused(f"the longest context is multiplied by factor, which is {factor!r}")
    return factor if isinstance(factor, int | float) else 1


def check_base(parameters: Mapping[str, Any], config: Config, layer_type: str) -> None:
    """Refuse parameters that say something and no base: the engine puts in null for what nothing says."""
    if parameters.get("rope_theta", config.get("rope_theta")) is None:
        raise Refused(f"the rope parameters of {layer_type} have no rope_theta")


def check_rope(config: Config, head_dim: int) -> None:
    """Refuse rotary parameters of which no embedding can be made."""
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and positions > MOST_POSITIONS:
        raise Refused("max_position_embeddings is no number of 64 bits")
    parameters: Any = config.get("rope_parameters") or {}
    if not isinstance(parameters, Mapping):
        raise Refused(f"the rope parameters must be an object, got {parameters!r}")
    if any(isinstance(value, Mapping) for value in parameters.values()):
        raise Refused("the rope parameters are nested by layer type, which this draft's class does not read")
    # The engine keeps its embeddings in a table by all of their parameters.
    lists = [value for value in parameters.values() if isinstance(value, list)]
    if any(isinstance(entry, list | Mapping) for entries in lists for entry in entries):
        raise Refused("a rope parameter is neither a number nor a list of numbers")
    width = _width(parameters, head_dim)
    kind = parameters.get("rope_type", "default")
    if not isinstance(kind, str) or kind not in TYPES:
        raise Refused(f"unknown rope type {kind!r}")
    needs, check = TYPES[kind]
    missing = [key for key in needs if key not in parameters]
    if missing:
        raise Refused(f"the rope type {kind} needs {missing[0]}")
    longest = config.get("max_position_embeddings")
    rope = Rope(
        parameters,
        width,
        longest if isinstance(longest, int) else None,
        config.get("is_neox_style", True) is not False,
    )
    check(rope)


def _width(parameters: Mapping[str, Any], head_dim: int) -> int:
    """The rotary width: `rope_dim`, else a part of the head."""
    width = parameters.get("rope_dim")
    if width:
        if not isinstance(width, int) or width < 0:
            raise Refused(f"rope_dim must be an integer above 0, got {width!r}")
        return int(width)
    factor = parameters.get("partial_rotary_factor", 1.0)
    if not isinstance(factor, int | float) or not 0.0 < factor <= 1.0:
        raise Refused(f"partial_rotary_factor={factor!r} must be between 0.0 and 1.0")
    return int(head_dim * factor)


def _table(rope: Rope, times: float = 1) -> None:
    """The angles of the plain embedding, over so many times the positions."""
    scalar(rope.base, "rope_theta")
    if rope.max_position is not None:
        positions(rope.max_position * times)


FOURIER: Final = ("num_key_value_heads", "num_inv_freq", "fope_sep_head", "fope_init_factor")
"""What a rope with `use_fope` cannot do without."""


def _default(rope: Rope) -> None:
    if rope.get("use_fope") and "mrope_section" not in rope.parameters:
        missing = [key for key in FOURIER if key not in rope.parameters]
        if missing:
            raise Refused(f"a rope with use_fope needs {missing[0]}")
        raise NotModelled("a rope with use_fope has coefficients of its own, which are not replayed")
    _table(rope)
    _sections(rope)


def _sections(rope: Rope) -> None:
    sections = rope.get("mrope_section")
    if sections and (not isinstance(sections, list) or sum(sections) != rope.width // 2):
        raise Refused(f"mrope_section {sections} must add up to half the rotary width, {rope.width // 2}")


def _linear(rope: Rope) -> None:
    factors = rope.get("factor")
    factors = [factors] if isinstance(factors, float) else factors
    # A factor that JSON writes without a point is taken for a list, which it is not.
    if not isinstance(factors, list):
        raise Refused(f"a linear rope needs a factor with a decimal point, got {factors!r}")
    for factor in factors:
        _table(rope, scalar(factor, "factor"))


def _ntk(rope: Rope) -> None:
    factor = rope.number("factor")
    base = number(rope.base, "rope_theta")
    scalar(base * factor if rope.get("mixed_b") is None else base, "rope_theta")


def _dynamic(rope: Rope) -> None:
    if "alpha" not in rope.parameters and "factor" not in rope.parameters:
        raise Refused("a dynamic rope needs alpha or factor")
    # The stretched base is a float, whatever integer it is made of.
    number(rope.base, "rope_theta")
    rope.number("alpha" if "alpha" in rope.parameters else "factor")
    if rope.width == 2:
        raise Refused("a dynamic rope divides by the rotary width less 2, which is 0")


def _yarn(rope: Rope) -> None:
    factor = rope.scalar("factor")
    if rope.get("attention_factor") is None and rope.get("mscale") and rope.get("mscale_all_dim"):
        if factor > 1:
            _ = [rope.number(key) for key in ("mscale", "mscale_all_dim")]
    else:
        rope.number("attention_factor", 1)
    multimodal = "mrope_section" in rope.parameters
    _yarn_table(rope, factor, bool(rope.get("truncate", True)), MULTIMODAL_FACTOR if multimodal else 1)
    _sections(rope)


def _deepseek_yarn(rope: Rope) -> None:
    factor = rope.scalar("factor")
    for key, default in (("mscale", 1), ("mscale_all_dim", 0)):
        rope.number(key, default)
    _yarn_table(rope, factor, truncate=True, times=1)


def _yarn_table(rope: Rope, factor: float, truncate: bool, times: int) -> None:
    base = scalar(rope.base, "rope_theta")
    length = rope.number("original_max_position_embeddings") * times
    for key, default in (("beta_fast", 32), ("beta_slow", 1)):
        try:
            bound = math.log(length / (rope.number(key, default) * 2 * math.pi)) / (2 * math.log(base))
            if truncate:
                math.floor(rope.width * bound)
        except (ValueError, ZeroDivisionError, OverflowError) as error:
            raise Refused(f"no {key} of a yarn rope can be found over {length} positions: {error}") from error
    if rope.width % 2 and rope.width > 3:
        raise Refused(f"a yarn rope needs an even rotary width, got {rope.width}")
    positions(length * factor)


def _llama3(rope: Rope) -> None:
    _table(rope)
    rope.scalar("factor")
    low, high = rope.number("low_freq_factor"), rope.number("high_freq_factor")
    rope.scalar("original_max_position_embeddings")
    if low == 0 or high == 0:
        raise Refused("the frequency factors of a llama3 rope must not be 0")
    if low != high:
        scalar(low, "low_freq_factor")
        if isinstance(low, bool):
            raise Refused("torch subtracts no boolean, which low_freq_factor is")


def _longrope(rope: Rope) -> None:
    if not rope.neox:
        raise Refused("a longrope supports the neox style alone")
    original = rope.number("original_max_position_embeddings")
    longest = rope.max_position
    if original == 0 or (longest is not None and longest > original > 0 and math.log(original) == 0):
        raise Refused(f"original_max_position_embeddings {original} divides nothing")
    for key in ("short_mscale", "long_mscale"):
        if rope.get(key) is not None:
            rope.scalar(key)
    positions(original)
    _table(rope)
    frequencies = -(-rope.width // 2)
    for key in ("short_factor", "long_factor"):
        factors = rope.get(key)
        factors = factors if isinstance(factors, list) else [factors]
        _ = [number(factor, key) for factor in factors]
        if len(factors) not in (1, frequencies):
            raise Refused(f"{key} has {len(factors)} factors for {frequencies} frequencies")


TYPES: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Rope], None]]]] = {
    "default": ((), _default),
    "proportional": ((), _table),
    "llama3": (
        ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"), _llama3,
    ),
    "linear": (("factor",), _linear),
    "ntk": (("factor",), _ntk),
    "dynamic": ((), _dynamic),
    "yarn": (("factor", "original_max_position_embeddings"), _yarn),
    "deepseek_yarn": (("factor", "original_max_position_embeddings"), _deepseek_yarn),
    "deepseek_llama_scaling": (("factor", "original_max_position_embeddings"), _deepseek_yarn),
    "longrope": (("short_factor", "long_factor", "original_max_position_embeddings"), _longrope),
}  # fmt: skip
"""Rope type -> the keys that it cannot do without, and what its class calculates."""
