"""What the Marlin kernels take.

Source: SGLang 0.5.23 `srt/layers/quantization/marlin_utils.py`.
"""

from typing import Any, Final

from dflash_audit.refusal import Refused

MIN_CAPABILITY: Final = 80
GROUP_SIZES: Final = (-1, 32, 64, 128)
WITH_ZERO_POINT: Final = ("uint4",)
WITHOUT_ZERO_POINT: Final = ("uint4b8", "uint8b128")
"""Types of integer weights: AWQ's carry zero points, GPTQ's a fixed bias."""

MIN_THREAD_N: Final = 64
MIN_THREAD_K: Final = 128


def objection(quant_type: str, group_size: Any, zero_point: Any, capability: int) -> str | None:
    """Why Marlin takes no weight so quantized, None where it does (`_check_marlin_supported`).

    `zero_point` is read as a truth value, and null as "either".
    """
    types = _types(zero_point) if capability >= MIN_CAPABILITY else ()
    if quant_type not in types:
        return (
            f"Marlin does not support weight_bits = {quant_type} "
            f"(zero point: {zero_point}, compute capability: {capability})."
        )
    if group_size not in GROUP_SIZES:
        return f"Marlin does not support group_size = {group_size}, only {list(GROUP_SIZES)}."
    return None


def _types(zero_point: Any) -> tuple[str, ...]:
    if zero_point is None:
        return WITHOUT_ZERO_POINT + WITH_ZERO_POINT
    return WITH_ZERO_POINT if zero_point else WITHOUT_ZERO_POINT


def shape_objection(
    output_size: int, input_size_per_partition: int, input_size: int, group_size: float
) -> str | None:
    """Why Marlin takes no weight of this shape, None where it does (`check_marlin_supports_shape`)."""
    if output_size % MIN_THREAD_N:
        return (
            f"Weight output_size_per_partition = {output_size} is not divisible by "
            f"min_thread_n = {MIN_THREAD_N}."
        )
    if input_size_per_partition % MIN_THREAD_K:
        return (
            f"Weight input_size_per_partition = {input_size_per_partition} is not divisible by "
            f"min_thread_k = {MIN_THREAD_K}."
        )
    if group_size < input_size and input_size_per_partition % group_size:
        return (
            f"Weight input_size_per_partition = {input_size_per_partition} is not divisible by "
            f"group_size = {group_size}."
        )
    return None


def whole(number: float, field: str) -> int:
    """`number` as a divisor of a tensor's size; `Refused` for 128.0: torch takes no float for a size."""
    if isinstance(number, float):
        raise Refused(f"{field} must be an integer, got {number!r}.")
    return int(number)
