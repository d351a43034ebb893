"""Writes a recorded case out as a checkpoint with numbers that a quantizer could have written.

Dense weights come out at N(0, 0.03), norms at about 1, and quantized weights so that with
their scales they are about as large: in the layout that the tensors' names, dtypes and shapes
give away, with a look at the config for what they do not (how many bits, whether rows are
reordered). Each tensor's numbers hang on its name, so it has the same ones in two cases.
Standard library only.

Conventions, from SGLang 0.5.23 `srt/layers/quantization/`: compressed-tensors divides by its
`weight_global_scale` and `input_global_scale`
(`compressed_tensors/schemes/compressed_tensors_w4a4_nvfp4.py`), ModelOpt multiplies with its
`weight_scale_2` (`modelopt_quant.py`); GPTQ stores zero points less one, and symmetric weights
around the middle (`gptq/`); packed integers of compressed-tensors lie around the middle too.
"""

import hashlib
import itertools
import json
import math
import re
import struct
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from statistics import NormalDist
from typing import Any

from materialize import copy_beside, encoded_header, files_of

from dflash_audit.dtypes import BITS

WEIGHT_RMS = 0.03
"""Root mean square of a weight, also of one that is quantized, with its scales."""

INTEGERS = {"I64": "q", "I32": "i", "I16": "h", "I8": "b", "U64": "Q", "U32": "I", "U16": "H", "U8": "B"}
"""Header dtype -> typecode of an array."""


def _e4m3(code: int) -> float:
    """The magnitude of a normal number of F8_E4M3."""
    return float((1 + (code & 7) / 8) * 2.0 ** ((code >> 3 & 15) - 7))


def _root_mean_square(values: Iterable[float]) -> float:
    squares = [value * value for value in values]
    return math.sqrt(sum(squares) / len(squares))


FP8 = [sign | code for sign in (0, 0x80) for code in range(0x38, 0x78)]
"""Bytes of F8_E4M3 from 1 to 240 in magnitude."""

BLOCK_SCALES = range(0x68, 0x78)
"""Bytes of F8_E4M3 from 64 to 240: the block scales of NVFP4, which another scale brings down."""

NIBBLES = [8, *range(1, 16)]
"""Packed 4-bit integers, as far above the middle as below."""

FP8_RMS = _root_mean_square(map(_e4m3, FP8))
FP4_RMS = _root_mean_square((0, 0.5, 1, 1.5, 2, 3, 4, 6))
BLOCK_SCALE_RMS = _root_mean_square(map(_e4m3, BLOCK_SCALES))
INTEGER_RMS = {4: _root_mean_square(nibble - 8 for nibble in NIBBLES), 8: 2**8 / math.sqrt(12)}

PACKED = ("weight_packed", "qweight")

Shape = Sequence[int]
Tensors = Mapping[str, tuple[str, Shape]]


@dataclass(frozen=True)
class Quantizer:
    """What the config tells of packed weights: (bits, group size or None) of each scheme, reordered rows."""

    schemes: Sequence[tuple[int, int | None]]
    act_order: bool


@dataclass(frozen=True)
class Spot:
    """A tensor to be written: `beside` are the tensors of its module by their own names, it among them."""

    module: str
    name: str
    dtype: str
    shape: Shape
    beside: Mapping[str, tuple[str, Shape]]
    quantizer: Quantizer

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    def random(self) -> Random:
        return _seeded(f"{self.module}.{self.name}")

    def random_of_layer(self) -> Random:
        """The same for all shards of what an engine fuses, where quantizers agree on a number for them."""
        fused = re.sub(
            r"\b[qkv]_proj$", "qkv_proj", re.sub(r"\b(gate|up)_proj$", "gate_up_proj", self.module)
        )
        return _seeded(f"{fused}.{self.name}")


def materialize_real(case: Path, target: Path) -> Path:
    """Write the checkpoint of the case folder `case` into the folder `target`, and return it."""
    copy_beside(case, target)
    tensors: Tensors = json.loads((case / "tensors.json").read_text())
    quantizer = _quantizer([json.loads(path.read_text()) for path in sorted(target.glob("*config.json"))])
    modules: dict[str, dict[str, tuple[str, Shape]]] = {}
    for full, (dtype, shape) in tensors.items():
        module, _, name = full.rpartition(".")
        modules.setdefault(module, {})[name] = (dtype, shape)
    for file_name, held in files_of(case, tensors).items():
        header, _ = encoded_header({full: (tensors[full][0], list(tensors[full][1])) for full in held})
        with open(target / file_name, "wb") as file:
            file.write(header)
            for full in held:
                module, _, name = full.rpartition(".")
                file.write(numbers(Spot(module, name, *tensors[full], modules[module], quantizer)))
    return target


def numbers(spot: Spot) -> bytes:
    """The data of a tensor, as a safetensors file holds it."""
    data = WRITERS.get(spot.name, _weight)(spot)
    assert len(data) == spot.numel * BITS[spot.dtype] // 8, spot
    return data


def _quantizer(configs: Sequence[Any]) -> Quantizer:
    schemes: list[tuple[int, int | None]] = []
    act_order = False
    for found in itertools.chain.from_iterable(map(_objects, configs)):
        bits, group = found.get("num_bits"), found.get("group_size")
        if isinstance(bits, int) and bits in (4, 8):
            schemes.append((bits, group if isinstance(group, int) and group > 0 else None))
        act_order |= found.get("desc_act") is True or found.get("actorder") in ("group", True)
    return Quantizer(schemes or [(8, None)], act_order)


def _objects(value: Any) -> list[Mapping[str, Any]]:
    """Every object in a JSON value, itself first."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [each for part in inner for each in _objects(part)]
    return [value, *found] if isinstance(value, dict) else found


# Weights


def _weight(spot: Spot) -> bytes:
    if spot.dtype in FLOAT_CODES:
        norm = "norm" in spot.module and len(spot.shape) == 1 and spot.name == "weight"
        return _drawn(
            spot.random(), spot.numel, spot.dtype, _normal, *((1.0, 0.1) if norm else (0.0, WEIGHT_RMS))
        )
    data = spot.random().randbytes(spot.numel * BITS[spot.dtype] // 8)
    if spot.name in PACKED and spot.dtype == "I32" and _bits(spot) == 4:
        return data.translate(bytes(high << 4 | low for high in NIBBLES for low in NIBBLES))
    return data.translate(BYTES[spot.dtype]) if spot.dtype in BYTES else data


def _rms(spot: Spot) -> float:
    """Root mean square of the numbers that a scale multiplies: those of the weight beside it, as stored."""
    for name in ("weight", *PACKED):
        dtype, _ = spot.beside.get(name, ("", ()))
        if dtype in ("I32", "I8"):
            return INTEGER_RMS[8 if dtype == "I8" else _bits(spot)]
        if dtype in STORED_RMS:
            return STORED_RMS[dtype]
    return 1.0


def _bits(spot: Spot) -> int:
    """Bits of a packed weight: by the zero points beside it, else by the scheme that fits its shape."""
    if "qweight" in spot.beside:
        zeros, scales = (spot.beside.get(name, ("", (0, 0)))[1] for name in ("qzeros", "scales"))
        return 32 * zeros[-1] // scales[-1] if zeros[-1] and scales[-1] else 4
    packed, scales = (spot.beside.get(name, ("", (0, 0)))[1] for name in ("weight_packed", "weight_scale"))
    fitting = (
        bits
        for bits, group in spot.quantizer.schemes
        if group and 32 // bits * packed[-1] == group * scales[-1]
    )
    return next(fitting, spot.quantizer.schemes[0][0])


# Scales


def _scale(spot: Spot) -> bytes:
    if spot.dtype == "F8_E4M3":
        return bytes(spot.random().choices(BLOCK_SCALES, k=spot.numel))
    wanted = WEIGHT_RMS / _rms(spot)
    if spot.dtype in ("U8", "F8_E8M0"):
        exponent = 127 + round(math.log2(wanted))
        return bytes(spot.random().choices((exponent - 1, exponent), k=spot.numel))
    return _about(spot, wanted)


def _global_scale(spot: Spot) -> bytes:
    return _of_layer(spot, WEIGHT_RMS / FP4_RMS / BLOCK_SCALE_RMS)


def _inverse_global_scale(spot: Spot) -> bytes:
    return _of_layer(spot, FP4_RMS * BLOCK_SCALE_RMS / WEIGHT_RMS)


def _input_scale(spot: Spot) -> bytes:
    """For activations up to about 8, in the largest of what each format holds: 448 * 6, 448 or 127."""
    dtype, _ = spot.beside.get("weight", ("", ()))
    return _of_layer(spot, 8.0 / {"U8": 448 * 6, "I8": 127}.get(dtype, 448))


def _inverse_input_scale(spot: Spot) -> bytes:
    return _of_layer(spot, 448 * 6 / 8.0)


def _about_one(spot: Spot) -> bytes:
    return _about(spot, 1.0)


def _about_a_tenth(spot: Spot) -> bytes:
    return _about(spot, 0.1)


def _about(spot: Spot, value: float) -> bytes:
    if spot.dtype not in FLOAT_CODES:
        return _weight(spot)
    return _drawn(spot.random(), spot.numel, spot.dtype, _uniform, value)


def _of_layer(spot: Spot, value: float) -> bytes:
    if spot.dtype not in FLOAT_CODES:
        return _weight(spot)
    return _drawn(spot.random_of_layer(), spot.numel, spot.dtype, _uniform, value)


# Integers


def _logical_shape(spot: Spot) -> bytes:
    _, packed = spot.beside.get("weight_packed", ("", (0, 0)))
    return _integers(spot, [packed[0], packed[-1] * 32 // _bits(spot)])


def _group_of_row(spot: Spot) -> bytes:
    _, scales = spot.beside.get("scales", ("", ()))
    _, transposed = spot.beside.get("weight_scale", ("", ()))
    groups = [*scales[:1], *transposed[1:], 1][0]
    rows = [row * groups // spot.numel for row in range(spot.numel)]
    if spot.quantizer.act_order:
        spot.random_of_layer().shuffle(rows)
    return _integers(spot, rows)


def _zero_points(spot: Spot) -> bytes:
    """Packed, next to the middle; GPTQ's in it, less one as that format has it."""
    bits, middle = _bits(spot), 1 << _bits(spot) - 1
    (_, weight), (_, scales) = (spot.beside.get(name, ("", (0,))) for name in ("qweight", "scales"))
    if spot.name == "qzeros" and weight[-1] == scales[-1]:
        choice = [middle - 1]
    else:
        choice = [middle - 1, middle, middle + 1]
    if bits == 4:
        choice = [high << 4 | low for high in choice for low in choice]
    return bytes(spot.random().choices(choice, k=spot.numel * BITS[spot.dtype] // 8))


def _zero_point(spot: Spot) -> bytes:
    return _integers(spot, spot.random().choices(range(8), k=spot.numel))


def _integers(spot: Spot, values: Sequence[int]) -> bytes:
    if spot.dtype not in INTEGERS or len(values) != spot.numel:
        return _weight(spot)
    return array(INTEGERS[spot.dtype], [value % 2 ** (BITS[spot.dtype] - 1) for value in values]).tobytes()


WRITERS: Mapping[str, Callable[[Spot], bytes]] = {
    "weight_scale": _scale,
    "weight_scale_inv": _scale,
    "scales": _scale,
    "weight_scale_2": _global_scale,
    "weight_global_scale": _inverse_global_scale,
    "input_scale": _input_scale,
    "input_global_scale": _inverse_input_scale,
    "pre_quant_scale": _about_one,
    "k_scale": _about_a_tenth,
    "v_scale": _about_a_tenth,
    "weight_shape": _logical_shape,
    "g_idx": _group_of_row,
    "weight_g_idx": _group_of_row,
    "qzeros": _zero_points,
    "weight_zero_point": _zero_points,
    "input_zero_point": _zero_point,
}
"""A tensor's own name -> what writes it; whatever else there is counts as a weight."""

BYTES: Mapping[str, bytes] = {
    "F8_E4M3": bytes(FP8 * 2),
    "F8_E5M2": bytes(sign << 7 | code for sign in (0, 1) for code in range(0x3C, 0x5C)) * 4,
    "F8_E8M0": bytes(range(119, 123)) * 64,
    "I8": bytes(max(code, 1) if code != 128 else 129 for code in range(256)),
    "BOOL": bytes((0, 1)) * 128,
    "I64": bytes(256),
    "U64": bytes(256),
}  # fmt: skip
"""What a random byte becomes: no NaN, no -128, no truth value but two; any byte of the others will do."""

STORED_RMS: Mapping[str, float] = {"F8_E4M3": FP8_RMS, "U8": FP4_RMS}

# Floats


def _drawn(
    random: Random, count: int, dtype: str, draw: Callable[..., Sequence[float]], *how: float
) -> bytes:
    """`count` numbers of a distribution of 256 equally likely ones."""
    codes = _codes(dtype, draw, *how)
    return array(codes.typecode, map(codes.__getitem__, random.randbytes(count))).tobytes()


@cache
def _codes(dtype: str, draw: Callable[..., Sequence[float]], *how: float) -> "array[Any]":
    typecode, encode = FLOAT_CODES[dtype]
    return array(typecode, map(encode, draw(*how)))


def _normal(mean: float, deviation: float) -> Sequence[float]:
    return [mean + deviation * NormalDist().inv_cdf((step + 0.5) / 256) for step in range(256)]


def _uniform(value: float) -> Sequence[float]:
    return [value * (0.8 + 0.4 * step / 255) for step in range(256)]


def _half(value: float) -> int:
    return int.from_bytes(struct.pack("<e", value), "little")


def _bfloat(value: float) -> int:
    """The upper half of a float32, rounded to the nearest and to even."""
    code = int.from_bytes(struct.pack("<f", value), "little")
    return code + 0x7FFF + (code >> 16 & 1) >> 16


FLOAT_CODES: Mapping[str, tuple[str, Callable[[float], float]]] = {
    "BF16": ("H", _bfloat), "F16": ("H", _half), "F32": ("f", float), "F64": ("d", float)
}  # fmt: skip
"""Header dtype -> typecode of an array, and what it holds for a number."""


def _seeded(name: str) -> Random:
    return Random(hashlib.sha256(name.encode()).digest())
