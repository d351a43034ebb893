"""How a target's head is built, by its quantization method."""

from typing import Final

DENSE_HEADED: Final = frozenset(
    """
auto-round-int8 bitsandbytes blockwise_int8 fp8 humming minimax_m3_nvfp4 modelslim moe_wna16 mxfp4 mxfp8
mxfp_w4a8 nvfp4_online petit_nvfp4 quark quark_int4fp8_moe quark_mxfp4 w4afp8 w8a8_fp8 w8a8_int8
""".split()
)
"""Methods under which the head is dense whatever is stored: one that is not does the target itself harm.

Source: SGLang 0.5.23 `srt/layers/quantization/`, every class in `QUANTIZATION_METHODS` whose
`get_quant_method` knows neither `ParallelLMHead` nor `VocabParallelEmbedding`. `awq` and `gptq` become
methods on a GPU that do.
"""
