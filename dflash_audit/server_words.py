"""What a server takes for the options of its own that the audit has too.

Source: SGLang 0.5.23 `srt/arg_groups/choices.py`, `QUANTIZATION_CHOICES` and
`DRAFT_ATTENTION_BACKEND_CHOICES`; `marlin` is 0.5.19's, `srt/server_args.py`. A draft of vLLM
inherits no quantization.
"""

from typing import Final

QUANTIZATIONS: Final = (
    "auto-round",
    "auto-round-int8",
    "awq",
    "awq_marlin",
    "bitsandbytes",
    "compressed-tensors",
    "fp8",
    "gguf",
    "gptq",
    "gptq_marlin",
    "humming",
    "marlin",
    "mlx_q4",
    "mlx_q8",
    "modelopt",
    "modelopt_fp4",
    "modelopt_fp8",
    "modelopt_mixed",
    "modelslim",
    "moe_wna16",
    "mxfp4",
    "mxfp8",
    "mxfp_w4a8",
    "nvfp4_online",
    "petit_nvfp4",
    "quark",
    "quark_int4fp8_moe",
    "quark_mxfp4",
    "unquant",
    "w4afp8",
    "w8a8_fp8",
    "w8a8_int8",
)

DRAFT_ATTENTION_BACKENDS: Final = (
    "ascend",
    "fa3",
    "fa4",
    "flashinfer",
    "intel_xpu",
    "triton",
    "trtllm_mha",
)
