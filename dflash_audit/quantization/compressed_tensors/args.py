"""`QuantizationArgs`: how one config group quantizes weights or activations.

Source: compressed-tensors 0.18.0 `quantization/quant_args.py` (the version
that SGLang 0.5.23 pins).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dflash_audit.quantization import lax
from dflash_audit.refusal import Refused

FIELDS: Final = frozenset(
    "num_bits type symmetric group_size strategy block_structure dynamic actorder"
    " scale_dtype zp_dtype observer observer_kwargs".split()
)
STRATEGIES: Final = frozenset("tensor channel group block token tensor_group attn_head".split())
DYNAMIC_STRATEGIES: Final = frozenset("token tensor tensor_group group".split())
DTYPES: Final = frozenset(
    "bcomplex32 bfloat16 bit bits16 bits1x8 bits2x4 bits4x2 bits8 bool cdouble cfloat chalf complex128"
    " complex32 complex64 double float float16 float32 float4_e2m1fn_x2 float64 float8_e4m3fn"
    " float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu half int int1 int16 int2 int3 int32 int4"
    " int5 int6 int64 int7 int8 long qint32 qint8 quint2x4 quint4x2 quint8 short uint1 uint16 uint2 uint3"
    " uint32 uint4 uint5 uint6 uint64 uint7 uint8".split()
)
"""The names of torch's dtypes (torch 2.14.1)."""
ACTORDERS: Final = {"group": "group", "dynamic": "group", "weight": "weight", "static": "weight"}


@dataclass(frozen=True, slots=True)
class QuantizationArgs:
    """The arguments after validation; `dynamic` may be "local", `actorder` is an alias resolved."""

    num_bits: int
    type: str
    symmetric: bool
    strategy: str
    group_size: int | None
    block_structure: tuple[int, int] | None
    dynamic: bool | str
    actorder: str | None


def read(value: Any, field: str) -> QuantizationArgs:
    """Validate one `weights` or `input_activations` object as compressed-tensors does.

    Raises:
        Refused: a key is unknown, a value is of the wrong kind, or two disagree.
    """
    if not isinstance(value, Mapping):
        raise Refused(f"{field} must be an object, got {value!r}")
    unknown = sorted(set(value) - FIELDS)
    if unknown:
        raise Refused(f"{field} has a key that compressed-tensors does not know: {unknown[0]!r}")
    num_bits = lax.integer(value.get("num_bits", 8), f"{field}.num_bits")
    kind = lax.choice(value.get("type", "int"), f"{field}.type", frozenset(("int", "float")))
    group_size = _group_size(value.get("group_size"), f"{field}.group_size")
    args = QuantizationArgs(
        num_bits=num_bits,
        type=kind,
        symmetric=lax.boolean(value.get("symmetric", True), f"{field}.symmetric"),
        strategy=_strategy(value.get("strategy"), group_size, field),
        group_size=group_size,
        block_structure=_block_structure(value.get("block_structure"), field),
        dynamic=_dynamic(value.get("dynamic", False), f"{field}.dynamic"),
        actorder=_actorder(value.get("actorder"), f"{field}.actorder"),
    )
    for key in ("scale_dtype", "zp_dtype"):
        _check_dtype(value.get(key), f"{field}.{key}")
    lax.text(value.get("observer"), f"{field}.observer")
    lax.table(value.get("observer_kwargs", {}), f"{field}.observer_kwargs")
    _check(args, field)
    # The zero point's dtype follows the weight's, and float has 4 and 8 bits only.
    if value.get("zp_dtype") is None and kind == "float" and num_bits not in (4, 8):
        raise Refused(f"{field}: only 4 and 8 bits are supported for type float, got {num_bits}")
    return args


def _group_size(value: Any, field: str) -> int | None:
    if value is None:
        return None
    # A validator compares before the value is converted, so a string is no number here.
    if not isinstance(value, int | float):
        raise Refused(f"{field} must be a number, got {value!r}")
    if value < -1:
        raise Refused(f"{field} must be positive, or -1 for a channel, got {value}")
    return lax.integer(value, field)


def _strategy(value: Any, group_size: int | None, field: str) -> str:
    if value is not None:
        return lax.choice(value, f"{field}.strategy", STRATEGIES)
    if group_size is None:
        return "tensor"
    if group_size == 0:
        raise Refused(f"{field}.group_size must be positive, or -1 for a channel, got 0")
    return "group" if group_size > 0 else "channel"


def _block_structure(value: Any, field: str) -> tuple[int, int] | None:
    if value is None:
        return None
    if isinstance(value, str):
        value = [_whole(part) for part in value.split("x")]
    if isinstance(value, list) and len(value) == 2 and all(isinstance(n, int) and n > 0 for n in value):
        return int(value[0]), int(value[1])
    raise Refused(f"{field}.block_structure must be two positive integers, got {value!r}")


def _whole(part: str) -> int:
    """A side of a block as Python's `int` reads it, 0 where it does not."""
    try:
        return int(part)
    except ValueError:
        return 0


def _dynamic(value: Any, field: str) -> bool | str:
    if isinstance(value, str):
        return lax.choice(value, field, frozenset(("local",)))
    return lax.boolean(value, field)


def _actorder(value: Any, field: str) -> str | None:
    if value is None or isinstance(value, bool):
        return "group" if value else None
    if isinstance(value, int | float):
        lax.boolean(value, field)
        return None  # true and false in numbers, which pass as such and are no order
    return ACTORDERS[lax.choice(value, field, frozenset(ACTORDERS))]


def _check_dtype(value: Any, field: str) -> None:
    name = lax.text(value, field)
    if name is not None and name.removeprefix("torch.") not in DTYPES:
        raise Refused(f"{field} names no dtype of torch: {name!r}")


def _check(args: QuantizationArgs, field: str) -> None:
    grouped = args.strategy in ("group", "tensor_group")
    positive = args.group_size is not None and args.group_size > 0
    if args.strategy == "token" and not args.dynamic:
        raise Refused(f"{field}: strategy token needs dynamic quantization")
    if grouped and not positive:
        raise Refused(f"{field}: strategy {args.strategy} needs a positive group_size")
    if positive and not grouped:
        raise Refused(f"{field}: group_size {args.group_size} needs strategy group, not {args.strategy}")
    if (args.strategy == "block") != (args.block_structure is not None):
        raise Refused(f"{field}: strategy block and block_structure need each other")
    if args.actorder == "group" and not grouped:
        raise Refused(f"{field}: actorder group needs strategy group, not {args.strategy}")
    if args.dynamic and args.strategy not in DYNAMIC_STRATEGIES:
        raise Refused(f"{field}: strategy {args.strategy} cannot be dynamic")
    if args.dynamic == "local" and args.strategy != "tensor_group":
        raise Refused(f"{field}: dynamic local needs strategy tensor_group")


def int8_both(weights: QuantizationArgs, activations: QuantizationArgs) -> bool:
    """Eight bits on both sides: static per tensor, or dynamic per token; types go unread."""
    fits = (
        weights.num_bits == activations.num_bits == 8
        and weights.strategy in ("tensor", "channel")
        and weights.symmetric
        and not weights.dynamic
    )
    static = activations.strategy == "tensor" and not activations.dynamic
    dynamic = activations.strategy == "token" and bool(activations.dynamic)
    return fits and (static or dynamic)
