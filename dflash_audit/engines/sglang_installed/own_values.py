"""Which parameters hold a right value of their own when nothing fills them: a closed list."""

from dflash_audit.engines.installed.process import Record
from dflash_audit.engines.installed.reading import Unfilled


def unfilled(module: Record, parameter: Record, act_order: bool) -> Unfilled:
    """As `Reading.unfilled`."""
    return Unfilled(has_own_value(parameter["name"], module["scheme"] or "", act_order))


def has_own_value(parameter: str, scheme: str, act_order: bool) -> bool:
    """By a parameter's own name, the class of its module's scheme or method ("" without), and the config.

    Source: SGLang 0.5.23 `srt/layers/quantization/kv_cache.py`, `modelopt_quant.py`, `gptq.py`.
    """
    return (
        (bool(scheme) and parameter in ("k_scale", "v_scale"))
        or (parameter == "input_scale" and "Fp4" in scheme)
        or (parameter == "g_idx" and not act_order)
    )
