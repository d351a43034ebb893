"""The heads that some drafts carry beside their layers: LiLiCorr's and DSpark's.

Source: SGLang 0.5.23 `srt/models/lilicorr.py` and `srt/models/dspark.py`. The
confidence head of DSpark is not built: the default server verifies whole
blocks (`SGLANG_RAGGED_VERIFY_MODE`).
"""

from typing import Final

from dflash_audit.engines.sglang.assembly import MODEL_DTYPE, Assembly
from dflash_audit.engines.sglang.conversions import Config, integer, required
from dflash_audit.engines.sglang.head_config import LiLiCorr, dspark, lilicorr
from dflash_audit.refusal import Refused
from dflash_audit.tree import Parameter

CANDIDATE_FEATURES: Final = 5

MARLIN_FP4: Final = "ModelOptNvFp4A16LinearMethod"
MARLIN_FP4_WITHOUT_NATIVE: Final = "ModelOptFp4LinearMethod"
NATIVE_FP4: Final = 100
"""Methods whose NVFP4 runs on Marlin, the second only on a card below this capability.

Source: SGLang 0.5.23 `_runs_fp4_marlin` in `srt/models/lilicorr.py`,
`initialize_fp4_gemm_config` in `srt/layers/quantization/fp4_utils.py`.
"""


def lilicorr_head(assembly: Assembly, config: Config, draft_hidden: int, block_size: int) -> None:
    """Add `LiLiCorrHead` under `lilicorr`.

    Args:
        draft_hidden: the draft's hidden size.
        block_size: tokens of a draft block.
    """
    head = lilicorr(config)
    hidden = head.hidden_size or draft_hidden
    _embeddings(assembly, head, hidden, block_size)
    if hidden != draft_hidden:
        _replicated(assembly, "lilicorr.token_proj", draft_hidden, hidden)
    _replicated(assembly, "lilicorr.pass_hidden_proj", draft_hidden, hidden)
    assembly.container("lilicorr.feature_norm", "LayerNorm", *_weight_and_bias(CANDIDATE_FEATURES))
    _lilicorr_mlp(assembly, "lilicorr.feature_mlp", CANDIDATE_FEATURES, hidden, hidden, quantized=False)
    _replicated(assembly, "lilicorr.context_proj", draft_hidden, hidden)
    assembly.container("lilicorr.layers", "ModuleList")
    for layer in range(head.num_layers):
        _lilicorr_layer(assembly, f"lilicorr.layers.{layer}", head, hidden)
    assembly.norm("lilicorr.output_norm", hidden)
    assembly.norm("lilicorr.anchor_norm", hidden)
    assembly.dense("lilicorr.factor_input_proj", 3 * hidden, hidden, bias=True)
    assembly.dense("lilicorr.out_head", hidden, head.factor_dim, bias=True)
    assembly.dense("lilicorr.in_head", hidden, head.factor_dim, bias=True)
    _replicated(assembly, "lilicorr.anchor_out_head", hidden, head.factor_dim)
    if assembly.tp > 1 and _on_fp4_marlin(assembly):
        raise Refused("a LiLiCorr head on NVFP4 Marlin needs a single rank")


def _on_fp4_marlin(assembly: Assembly) -> bool:
    methods = (MARLIN_FP4,) if assembly.capability >= NATIVE_FP4 else (MARLIN_FP4, MARLIN_FP4_WITHOUT_NATIVE)
    schemes = (m.scheme for name, m in assembly.tree.modules.items() if name.startswith("lilicorr."))
    return any(scheme is not None and scheme.name in methods for scheme in schemes)


def _embeddings(assembly: Assembly, head: LiLiCorr, hidden: int, block_size: int) -> None:
    shapes = {
        "slot_embedding": (1, 1, block_size - 1, 1, hidden),
        "rank_embedding": (1, 1, 1, head.candidate_topk, hidden),
        "relative_slot_bias": (head.num_heads, 2 * block_size - 1),
        "same_slot_bias": (head.num_heads,),
    }
    parameters = (Parameter(name, shape, MODEL_DTYPE) for name, shape in shapes.items())
    assembly.container("lilicorr", "LiLiCorrHead", *parameters)


def _lilicorr_layer(assembly: Assembly, name: str, head: LiLiCorr, hidden: int) -> None:
    if hidden % head.num_heads:
        raise Refused(f"lilicorr_num_heads {head.num_heads} must divide its hidden size {hidden}")
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
    _lilicorr_mlp(assembly, f"{name}.mlp", hidden, int(hidden * head.mlp_ratio), hidden)


def _lilicorr_mlp(
    assembly: Assembly, name: str, inputs: int, middle: int, outputs: int, quantized: bool = True
) -> None:
    assembly.container(name, "LiLiCorrMLP")
    _replicated(assembly, f"{name}.up_proj", inputs, middle, quantized)
    _replicated(assembly, f"{name}.down_proj", middle, outputs, quantized)


def _replicated(assembly: Assembly, name: str, inputs: int, outputs: int, quantized: bool = True) -> None:
    assembly.replicated(name, inputs, outputs, bias=True, prefix=name, quantized=quantized)


def _weight_and_bias(size: int) -> tuple[Parameter, Parameter]:
    return Parameter("weight", (size,), MODEL_DTYPE), Parameter("bias", (size,), MODEL_DTYPE)


def dspark_head(assembly: Assembly, config: Config, nemotron: bool, in_dflash_config: bool = True) -> None:
    """Add the Markov head of a DSpark draft under `markov_head`."""
    dspark(config, in_dflash_config)
    rank = integer(config.get("markov_rank", 0), "markov_rank")
    if rank <= 0:
        raise Refused(f"a DSpark draft needs markov_rank above 0 at the top of its config, got {rank}")
    kind = str(config.get("markov_head_type", "vanilla")).lower()
    tokens = integer(required(config, "vocab_size"), "vocab_size")
    hidden = integer(required(config, "hidden_size"), "hidden_size")
    if kind not in MARKOV_CLASSES or (nemotron and kind != "vanilla"):
        raise Refused(f"markov_head_type {kind!r} is not supported here")
    name = "Nemotron35VanillaMarkov" if nemotron else MARKOV_CLASSES[kind]
    assembly.container("markov_head", name)
    first = Parameter("weight", (tokens, rank), MODEL_DTYPE)
    assembly.container("markov_head.markov_w1", "Embedding", first)
    if nemotron:
        assembly.replicated("markov_head.markov_w2", rank, tokens, False, "markov_head.markov_w2")
    else:
        assembly.dense("markov_head.markov_w2", rank, tokens, bias=False)
    if kind == "gated":
        assembly.dense("markov_head.gate_proj", hidden + rank, rank, bias=True)
    if kind == "rnn":
        assembly.dense("markov_head.joint_proj", 2 * rank + hidden, 3 * rank, bias=True)


MARKOV_CLASSES: Final = {"vanilla": "VanillaMarkov", "gated": "GatedMarkovHead", "rnn": "RNNHead"}
