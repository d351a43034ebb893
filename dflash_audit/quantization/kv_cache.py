"""The scales of an attention's KV cache.

Source: SGLang 0.5.23 `srt/layers/quantization/kv_cache.py`, `BaseKVCacheMethod`.
Both start at -1, which the engine reads as "not calibrated".
"""

from dflash_audit.tree import Parameter, Scheme


def kv_cache_scheme(method: str) -> Scheme:
    """The scheme of an attention whose quantization method is `method`: two scalars."""
    scales = (Parameter(name, (), "float32", defaulted=True, default=-1.0) for name in ("k_scale", "v_scale"))
    return Scheme(method, "v1", tuple(scales))
