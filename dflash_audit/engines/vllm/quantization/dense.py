"""Dense layers, and the scales of an attention's KV cache.

Source: vLLM 0.33.0 `model_executor/layers/linear.py` (`UnquantizedLinearMethod`) and
`quantization/kv_cache.py` (`BaseKVCacheMethod`): every scale starts at -1, which is read as
"not calibrated".
"""

from dflash_audit.tree import Kind, Linear, Parameter, Placement, Scheme


def dense_linear(layer: Linear, dtype: str = "bfloat16") -> Scheme:
    """The scheme of a linear that no quantization touches."""
    shape = (layer.output_size_per_partition, layer.input_size_per_partition)
    weight = Parameter("weight", shape, dtype, Placement(Kind.WEIGHT, output_dim=0, input_dim=1))
    return Scheme("UnquantizedLinearMethod", "v2", (weight,))


def cache_scales(method: str) -> Scheme:
    """The scheme of an attention whose method is `method`: four scalars in the model's dtype."""
    scales = tuple(
        Parameter(f"{each}_scale", (), "bfloat16", defaulted=each != "prob", unread=each == "prob")
        for each in ("q", "k", "v", "prob")
    )
    return Scheme(method, "v1", scales)
