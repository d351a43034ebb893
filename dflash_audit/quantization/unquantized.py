"""Dense layers.

Source: SGLang 0.5.23 `srt/layers/quantization/unquant.py`.
"""

from dflash_audit.tree import Linear, Parameter, Placement, Scheme


def dense_linear(layer: Linear) -> Scheme:
    """The scheme of a linear that no quantization touches (`UnquantizedLinearMethod`)."""
    weight = Parameter(
        "weight",
        (layer.output_size_per_partition, layer.input_size_per_partition),
        "bfloat16",
        Placement(output_dim=0, input_dim=1),
    )
    return Scheme("UnquantizedLinearMethod", "v1", (weight,))
