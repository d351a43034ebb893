"""The two spellings of a dtype: the safetensors header's and torch's.

Source: safetensors 0.8.0 `safetensors/torch.py` (`_TYPES`) and the format's
`Dtype` list.
"""

from typing import Final

BITS: Final[dict[str, int]] = {
    "F64": 64, "I64": 64, "U64": 64, "C64": 64,
    "F32": 32, "I32": 32, "U32": 32,
    "F16": 16, "BF16": 16, "I16": 16, "U16": 16,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I8": 8, "U8": 8, "BOOL": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
"""Bits per element of each dtype a header may name."""

TORCH: Final[dict[str, str]] = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F4": "float4_e2m1fn_x2",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
    "BOOL": "bool", "C64": "complex64",
}  # fmt: skip
"""Header dtype -> torch's name without `torch.`; torch has none for the 6-bit floats."""

DENSE_FLOATS: Final = frozenset(("float64", "float32", "float16", "bfloat16"))
"""torch's dtypes whose numbers mean what they say, without a scale."""
