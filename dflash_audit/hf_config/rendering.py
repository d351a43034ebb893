"""What stops the engine when it prints a config.

Source: transformers 5.19.0 `configuration_utils.py`: `from_dict` formats the
object for its log on every load, through `to_dict`, `_remove_keys_not_serialized`,
`dict_dtype_to_str` and JSON.
"""

from collections.abc import Mapping
from typing import Any, Final

from dflash_audit.hf_config.config_object import ConfigObject
from dflash_audit.refusal import Refused

REPLACED: Final = frozenset({"transformers_version", "model_type", "kwargs"})
"""Attributes of the whole that are printed as something else, or not at all."""

NOT_PRINTED: Final = frozenset({
    "_is_quantized", "_auto_class", "_commit_hash", "_attn_implementation_internal",
    "_experts_implementation_internal", "ignore_keys_at_rope_validation", "base_model_tp_plan",
    "base_model_pp_plan", "base_model_fsdp_plan", "distributed_config",
})  # fmt: skip
"""Keys that are taken out at every depth."""


def refuse_unprintable(config: ConfigObject) -> None:
    """Refuse a quantization config that is no object, and a nested `dtype` that has no spelling."""
    quantization = config.get("quantization_config", None)
    if quantization is not None and not isinstance(quantization, dict):
        raise Refused(f"quantization_config is not an object: {quantization!r}")
    _refuse_dtypes({name: value for name, value in config.values.items() if name not in REPLACED})


def _refuse_dtypes(table: Mapping[str, Any]) -> None:
    dtype = table.get("dtype")
    if dtype is not None and not isinstance(dtype, dict | str | int) and "." not in str(dtype):
        raise Refused(f"a config cannot hold the dtype {dtype!r}")
    for name, value in table.items():
        # A table under `dtype` has its values spelled out before anyone looks into it.
        if isinstance(value, dict) and name != "dtype" and name not in NOT_PRINTED:
            _refuse_dtypes(value)
