"""The LiLiCorr head of a draft.

Source: vLLM 0.33.0 `model_executor/models/lilicorr.py`.
"""

from typing import Any, Final

from dflash_audit.engines.vllm.assembly import MODEL_DTYPE, Assembly
from dflash_audit.engines.vllm.draft import Draft, Shape
from dflash_audit.engines.vllm.fields import needed, real, truthy
from dflash_audit.refusal import Refused
from dflash_audit.tree import Parameter

CANDIDATE_FEATURES: Final = 5
MAX_CANDIDATES: Final = 16


def check(draft: Draft) -> None:
    """Refuse what the model refuses before it builds."""
    inner = draft.inner
    if not truthy(inner.get("lilicorr_enabled", True)):
        raise Refused("LiLiCorr requires lilicorr_enabled=True")
    if not 1 <= draft.tokens < block_size(draft):
        raise Refused("LiLiCorr requires 1 <= num_speculative_tokens < the trained block_size")
    taps, groups = _number(inner.get("conv_kernel_size", 0)), _number(inner.get("conv_group_size", 0))
    if taps < 0 or groups < 0 or bool(taps) != bool(groups):
        raise Refused("conv_kernel_size and conv_group_size are needed together")


def check_vocabulary(draft: Draft) -> None:
    """Refuse a draft of a part of the vocabulary."""
    if draft.draft_vocab_size != draft.target.vocab_size:
        raise Refused("LiLiCorr candidates require the full target vocabulary")


def block_size(draft: Draft) -> int:
    """The trained block size, 0 where the config has none."""
    return int(_number(draft.inner.get("block_size", draft.config.get("block_size", 0))))


def has_convolutions(draft: Draft) -> bool:
    return bool(draft.inner.get("conv_kernel_size", 0))


def head(assembly: Assembly, draft: Draft) -> None:
    """Add `LiLiCorrHead` under `model.lilicorr`."""
    inner, own, at = draft.inner, draft.hidden_size, "model.lilicorr"
    width = needed(inner, "lilicorr_hidden_size")
    hidden = int(_number(width)) if width else own
    topk = int(_number(needed(inner, "lilicorr_candidate_topk")))
    if not 0 < topk <= MAX_CANDIDATES or topk & (topk - 1):
        raise Refused(f"lilicorr_candidate_topk must be a power of two of at most {MAX_CANDIDATES}")
    heads, layers, factor = (
        int(_number(needed(inner, f"lilicorr_{key}"))) for key in ("num_heads", "num_layers", "factor_dim")
    )
    ratio = _number(needed(inner, "lilicorr_mlp_ratio"))
    for key in ("lilicorr_vector_eps", "lilicorr_logit_scale"):
        real(inner, key)
    block = block_size(draft)
    assembly.container(
        at,
        "LiLiCorrHead",
        Parameter("slot_embedding", (1, 1, block - 1, 1, hidden), MODEL_DTYPE),
        Parameter("rank_embedding", (1, 1, 1, topk, hidden), MODEL_DTYPE),
        Parameter("relative_slot_bias", (heads, 2 * block - 1), MODEL_DTYPE),
        Parameter("same_slot_bias", (heads,), MODEL_DTYPE),
    )
    if hidden != own:
        _replicated(assembly, f"{at}.token_proj", own, hidden)
    _replicated(assembly, f"{at}.pass_hidden_proj", own, hidden)
    features = (CANDIDATE_FEATURES,)
    assembly.container(
        f"{at}.feature_norm",
        "LayerNorm",
        Parameter("weight", features, MODEL_DTYPE),
        Parameter("bias", features, MODEL_DTYPE),
    )
    _mlp(assembly, f"{at}.feature_mlp", CANDIDATE_FEATURES, hidden, hidden)
    _replicated(assembly, f"{at}.context_proj", own, hidden)
    assembly.container(f"{at}.layers", "ModuleList")
    for layer in range(layers):
        _layer(assembly, f"{at}.layers.{layer}", hidden, heads, ratio)
    assembly.norm(f"{at}.output_norm", hidden)
    assembly.norm(f"{at}.anchor_norm", hidden)
    for name, inputs, outputs in (
        ("factor_input_proj", 3 * hidden, hidden),
        ("out_head", hidden, factor),
        ("in_head", hidden, factor),
    ):
        _replicated(assembly, f"{at}.{name}", inputs, outputs, quantized=False)
    _replicated(assembly, f"{at}.anchor_out_head", hidden, factor)


def _layer(assembly: Assembly, name: str, hidden: int, heads: int, ratio: float) -> None:
    if heads <= 0 or hidden % heads:
        raise Refused(f"LiLiCorr's hidden_size={hidden} must be divisible by num_heads={heads}")
    assembly.container(name, "LiLiCorrLayer")
    assembly.norm(f"{name}.attn_norm", hidden)
    assembly.container(
        f"{name}.attn",
        "LiLiCorrLatticeAttention",
        Parameter("in_proj_weight", (3 * hidden, hidden), MODEL_DTYPE),
        Parameter("in_proj_bias", (3 * hidden,), MODEL_DTYPE),
    )
    _replicated(assembly, f"{name}.attn.out_proj", hidden, hidden)
    assembly.norm(f"{name}.mlp_norm", hidden)
    _mlp(assembly, f"{name}.mlp", hidden, int(hidden * ratio), hidden)


def _mlp(assembly: Assembly, name: str, inputs: int, middle: int, outputs: int) -> None:
    assembly.container(name, "NemotronHMLP")
    assembly.column(f"{name}.up_proj", inputs, middle, f"{name}.up_proj", bias=True)
    assembly.row(f"{name}.down_proj", middle, outputs, f"{name}.down_proj", bias=True)


def _replicated(assembly: Assembly, name: str, inputs: int, outputs: int, quantized: bool = True) -> None:
    assembly.replicated(name, inputs, outputs, name, bias=True, quantized=quantized)


def _number(value: Any) -> float:
    if not isinstance(value, int | float):
        raise Refused(f"a number was expected in dflash_config, got {value!r}")
    return value


SHAPE: Final = Shape(
    "LiLiCorr",
    layer="DFlash2Qwen3DecoderLayer",
    convolutions=has_convolutions,
    head=head,
    own_head=True,
    reduced=lambda own, target: False,
    check=check,
)
