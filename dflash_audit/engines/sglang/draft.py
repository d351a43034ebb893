"""The tree of a DFlash draft: layers, projection of the target's features, norms, heads.

Source: SGLang 0.5.23 `srt/models/dflash.py`.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from dflash_audit.engine_run import Conditions
from dflash_audit.engines.sglang import dflash_config
from dflash_audit.engines.sglang.assembly import MODEL_DTYPE, Assembly
from dflash_audit.engines.sglang.conversions import Config, integer, real, required
from dflash_audit.engines.sglang.dflash_config import DFlashConfig
from dflash_audit.engines.sglang.heads import dspark_head, lilicorr_head
from dflash_audit.engines.sglang.profile import Profile
from dflash_audit.engines.sglang.rope import read_rope
from dflash_audit.quantization.config import QuantConfig
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Parameter, Placement, Tree, layers_to_build


class Draft(NamedTuple):
    """What the parts of a draft share while it is built.

    `layer_prefix(i)` is the prefix of layer i, empty where layers are asked for bare.
    """

    config: Config
    parsed: DFlashConfig
    hidden_size: int
    num_layers: int
    num_taps: int
    nemotron: bool
    gemma: bool
    own_prefixes: bool
    laguna: bool
    profile: Profile

    def layer_prefix(self, layer: int) -> str:
        return f"layers.{layer}" if self.own_prefixes else ""


class DraftClass(NamedTuple):
    """A draft class of SGLang: its name, what it adds to the base, how its load differs.

    `own_prefixes` is the class's `supports_quantization`.
    """

    name: str
    head: Callable[[Assembly, Draft], None] | None = None
    laguna: bool = False
    own_prefixes: bool = False
    dspark: bool = False
    lilicorr: bool = False
    selector: bool = False


class BuiltDraft(NamedTuple):
    """A built draft and the facts about it that its load depends on."""

    draft_class: DraftClass
    draft: Draft
    tree: Tree


def build(
    draft_class: DraftClass,
    profile: Profile,
    config: Config,
    quant: QuantConfig | None,
    conditions: Conditions,
) -> BuiltDraft:
    """Build the tree of a draft.

    Args:
        config: the draft's config as the engine sees it.
        quant: its quantization config, None for a dense draft.
        conditions: of the server; shapes are those of its rank 0.

    Raises:
        Refused: a constructor raises.
        NotModelled: a quantization method leaves the modelled ground.
    """
    draft = _draft(draft_class, profile, config)
    assembly = Assembly(quant, conditions.tp, conditions.capability, Tree(), profile.kv_cache_scales)
    assembly.container("", draft_class.name)
    if draft.nemotron:
        tokens = integer(required(config, "vocab_size"), "vocab_size")
        assembly.vocabulary("embed_tokens", tokens, draft.hidden_size, "embed_tokens")
    assembly.container("layers", "ModuleList")
    for layer in range(draft.num_layers):
        _layer(assembly, draft, layer)
    assembly.norm("norm", draft.hidden_size, draft.gemma)
    _projection(assembly, draft)
    if draft.parsed.domino:
        _domino(assembly, draft)
    if draft_class.head:
        draft_class.head(assembly, draft)
    return BuiltDraft(draft_class, draft, assembly.tree)


def _draft(draft_class: DraftClass, profile: Profile, config: Config) -> Draft:
    num_layers = layers_to_build(integer(required(config, "num_hidden_layers"), "num_hidden_layers"))
    parsed = dflash_config.parse(config)
    nemotron = dflash_config.is_nemotron_35(config)
    quantized = profile.checkpoint_prefixes and config.get("quantization_config") is not None
    return Draft(
        config=config,
        parsed=parsed,
        hidden_size=integer(required(config, "hidden_size"), "hidden_size"),
        num_layers=num_layers,
        num_taps=len(dflash_config.taps(parsed, num_layers)),
        nemotron=nemotron,
        gemma=bool(config.get("use_gemma_norm", False)),
        own_prefixes=draft_class.own_prefixes or nemotron or quantized,
        laguna=draft_class.laguna,
        profile=profile,
    )


def _layer(assembly: Assembly, draft: Draft, layer: int) -> None:
    name, prefix = f"layers.{layer}", draft.layer_prefix(layer)
    real(draft.config.get("rms_norm_eps", 1e-6), "rms_norm_eps")
    assembly.container(name, "DFlashLagunaDecoderLayer" if draft.laguna else "DFlashDecoderLayer")
    assembly.norm(f"{name}.input_layernorm", draft.hidden_size, draft.gemma)
    _attention(assembly, draft, layer, f"{prefix}.self_attn." if prefix else "")
    assembly.norm(f"{name}.post_attention_layernorm", draft.hidden_size, draft.gemma)
    _mlp(assembly, draft, f"{name}.mlp", f"{prefix}.mlp." if prefix else "")
    if draft.parsed.conv_kernel_size:
        _grouped_conv(assembly, draft, f"{name}.attention_conv")
        _grouped_conv(assembly, draft, f"{name}.mlp_conv")


def _attention(assembly: Assembly, draft: Draft, layer: int, prefix: str) -> None:
    config, hidden, name = draft.config, draft.hidden_size, f"layers.{layer}.self_attn"
    heads = integer(required(config, "num_attention_heads"), "num_attention_heads")
    kv_heads = integer(config.get("num_key_value_heads", heads), "num_key_value_heads")
    head_dim = head_dimension(config, hidden, heads)
    if head_dim == 0:
        raise Refused("head_dim must not be 0: attention is scaled by its root")
    _check_heads(heads, kv_heads, assembly.tp)
    bias = bool(config.get("attention_bias", False))
    sinks = _sinks(draft, heads // assembly.tp)
    assembly.container(name, "DFlashLagunaAttention" if draft.laguna else "DFlashAttention", *sinks)
    assembly.qkv(f"{name}.qkv_proj", hidden, head_dim, heads, kv_heads, bias, f"{prefix}qkv_proj")
    assembly.row(f"{name}.o_proj", heads * head_dim, hidden, bias, f"{prefix}o_proj")
    assembly.norm(f"{name}.q_norm", head_dim, draft.gemma)
    assembly.norm(f"{name}.k_norm", head_dim, draft.gemma)
    read_rope(config, head_dim)
    assembly.container(f"{name}.rotary_emb", "RotaryEmbedding")
    dflash_config.attention_type(config, layer)
    assembly.attention(f"{name}.attn")
    gated = gate(config) if draft.laguna else None
    if gated is not None:
        outputs = heads if gated == "per-head" else heads * head_dim
        assembly.column(f"{name}.g_proj", hidden, outputs, f"{prefix}g_proj")


def head_dimension(config: Config, hidden: int, heads: int) -> int:
    """Numbers of a head."""
    if "head_dim" in config:
        return integer(config["head_dim"], "head_dim")
    if heads == 0:
        raise Refused("num_attention_heads must not be zero")
    return hidden // heads


def _check_heads(heads: int, kv_heads: int, tp: int) -> None:
    if heads % tp:
        raise Refused(f"num_attention_heads {heads} is not divisible by {tp} ranks")
    if kv_heads >= tp:
        if kv_heads % tp:
            raise Refused(f"num_key_value_heads {kv_heads} is not divisible by {tp} ranks")
    elif kv_heads == 0 or tp % kv_heads:
        raise Refused(f"num_key_value_heads {kv_heads} does not divide {tp} ranks")


def _sinks(draft: Draft, heads: int) -> tuple[Parameter, ...]:
    """The sink bias of an attention, one number a head of this rank."""
    if draft.nemotron and bool(draft.config.get("attention_sink_bias", False)):
        return (Parameter("attention_sink_bias", (heads,), "float32", Placement(Kind.SHARDED)),)
    if draft.parsed.attention_sink_bias:
        return (Parameter("attention_sink_bias", (heads,), MODEL_DTYPE, Placement(Kind.SHARDED)),)
    return ()


def gate(config: Config) -> Literal["per-head", "per-element"] | None:
    """What Laguna's gate has a number for, None where it is disabled.

    Source: SGLang 0.5.23 `normalize_gating` in `srt/configs/laguna.py`.
    """
    gating: Any = config.get("gating", True)
    # The engine compares with ==, so 1 and 0 stand for true and false.
    if gating == 1 or gating == "per-head":
        return "per-head"
    if gating == "per-element":
        return "per-element"
    if gating is None or gating == 0 or gating == "disabled":
        return None
    raise Refused(f"gating must be true, false, per-head, per-element or disabled, got {gating!r}")


def _mlp(assembly: Assembly, draft: Draft, name: str, prefix: str) -> None:
    config, hidden = draft.config, draft.hidden_size
    size = integer(config.get("intermediate_size", 0), "intermediate_size")
    if size <= 0:
        raise Refused(f"intermediate_size must be positive, got {size}")
    assembly.container(name, "DFlashMLP")
    assembly.merged_column(f"{name}.gate_up_proj", hidden, (size, size), f"{prefix}gate_up_proj")
    assembly.row(f"{name}.down_proj", size, hidden, False, f"{prefix}down_proj")
    activation = config.get("hidden_act", "silu")
    known = draft.profile.activations
    if activation not in known:
        raise Refused(f"hidden_act must be one of {', '.join(known)}, got {activation!r}")
    if activation == "silu":
        assembly.container(f"{name}.act_fn", "SiluAndMul")
        return
    for key in ("swiglu_alpha", "swiglu_limit"):
        real(required(config, key), key)


def _grouped_conv(assembly: Assembly, draft: Draft, name: str) -> None:
    taps, group, hidden = draft.parsed.conv_kernel_size, draft.parsed.conv_group_size, draft.hidden_size
    if hidden % group:
        raise Refused(f"conv_group_size {group} must divide hidden_size {hidden}")
    kernel = Parameter("base_kernel", (2, taps, hidden), MODEL_DTYPE)
    assembly.container(name, "DFlashGroupedConv", kernel)
    assembly.dense(f"{name}.kernel_projection", hidden, 2 * taps * (hidden // group), bias=False)


def _projection(assembly: Assembly, draft: Draft) -> None:
    """`fc`, from the tapped features of the target to the draft's width, and its norm."""
    inputs, hidden = draft.num_taps * draft.hidden_size, draft.hidden_size
    if draft.own_prefixes:
        assembly.replicated("fc", inputs, hidden, False, "fc")
    else:
        assembly.dense("fc", inputs, hidden, bias=False)
    assembly.norm("hidden_norm", hidden, draft.gemma)


def _domino(assembly: Assembly, draft: Draft) -> None:
    domino, hidden = draft.parsed.domino, draft.hidden_size
    assert domino is not None
    gates = 3 * domino.gru_hidden_dim
    assembly.container(
        "prefix_gru",
        "GRU",
        Parameter("weight_ih_l0", (gates, hidden), MODEL_DTYPE),
        Parameter("weight_hh_l0", (gates, domino.gru_hidden_dim), MODEL_DTYPE),
    )
    assembly.container("embed_proj", "Sequential")
    assembly.dense("embed_proj.0", hidden + domino.gru_hidden_dim, domino.emb_dim, bias=False)
    assembly.container("embed_proj.1", "SiLU")
    tokens = integer(required(draft.config, "vocab_size"), "vocab_size")
    assembly.dense("embed_proj.2", domino.emb_dim, tokens, bias=False)


def _laguna(assembly: Assembly, draft: Draft) -> None:
    """One norm for each tapped feature (`DFlashLagunaForCausalLM`)."""
    assembly.container("aux_hidden_norms", "ModuleList")
    for tap in range(draft.num_taps):
        assembly.norm(f"aux_hidden_norms.{tap}", draft.hidden_size)


def _selector(assembly: Assembly, draft: Draft) -> None:
    """The candidate selector (`DFlash2DraftModel`)."""
    rank = draft.parsed.selector_rank
    if not rank:
        raise Refused("a DFlash2 draft needs dflash_config.selector_rank")
    tokens = integer(required(draft.config, "vocab_size"), "vocab_size")
    codebooks = ("predecessor_codebook", "successor_codebook")
    assembly.container(
        "candidate_selector",
        "CandidateSelector",
        *(Parameter(name, (tokens, rank), MODEL_DTYPE) for name in codebooks),
    )
    assembly.dense("candidate_selector.hidden_projection", draft.hidden_size, rank, bias=False)


def _lilicorr(assembly: Assembly, draft: Draft) -> None:
    lilicorr_head(assembly, draft.config, draft.hidden_size, draft.parsed.block_size)


def _dspark(assembly: Assembly, draft: Draft) -> None:
    dspark_head(assembly, draft.config, draft.nemotron, draft.profile.dspark_in_dflash_config)


CLASSES: Final[dict[str, DraftClass]] = {
    c.name: c
    for c in (
        DraftClass("DFlashDraftModel"),
        DraftClass("MuseGlimmerAssistantModel"),
        DraftClass("DFlashLagunaForCausalLM", head=_laguna, laguna=True),
        DraftClass("DFlash2DraftModel", head=_selector, selector=True),
        DraftClass("DFlash2BeamDraftModel", head=_selector, selector=True),
        DraftClass("MiniMaxDFlash2DraftModel", head=_selector, selector=True),
        DraftClass("LiLiCorrDraftModel", head=_lilicorr, own_prefixes=True, lilicorr=True),
        DraftClass("Qwen3DSparkModel", head=_dspark, dspark=True),
        DraftClass("LingDSparkModel", head=_dspark, dspark=True),
        DraftClass("DSparkDraftModel", head=_dspark, dspark=True),
    )
}
"""Source: SGLang 0.5.23 `EntryClass` of `srt/models/dflash.py`, `lilicorr.py` and `dspark.py`."""
