"""The tree of a draft of DFlash's family: layers, projection of the target's features, norms, heads.

Source: vLLM 0.33.0 `model_executor/models/qwen3_dflash.py`, `qwen3_dflash2.py`,
`qwen3_dspark.py`, `qwen3_xpress.py` and `models/beam/nvidia/dflash2.py`.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from dflash_audit.engines.vllm import architectures
from dflash_audit.engines.vllm.assembly import MODEL_DTYPE, Assembly
from dflash_audit.engines.vllm.fields import Config, integer, needed, nested, real, size, truthy
from dflash_audit.engines.vllm.quantization.config import QuantConfig
from dflash_audit.engines.vllm.rope import check_rope
from dflash_audit.engines.vllm.taps import taps
from dflash_audit.engines.vllm.target import TargetFacts
from dflash_audit.hf_config.layer_types import SLIDING
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Parameter, Placement, Tree, layers_to_build

Head = Callable[[Assembly, "Draft"], None]


class Draft(NamedTuple):
    """What the parts of a draft share while it is built; `tokens` are those that it proposes at once."""

    config: Config
    target: TargetFacts
    tokens: int

    @property
    def inner(self) -> Config:
        return nested(self.config)

    @property
    def hidden_size(self) -> int:
        return integer(self.config, "hidden_size")

    @property
    def num_layers(self) -> int:
        return layers_to_build(integer(self.config, "num_hidden_layers"))

    @property
    def draft_vocab_size(self) -> int:
        """`draft_vocab_size`, the whole vocabulary where the config has none."""
        key = "vocab_size" if self.config.get("draft_vocab_size") is None else "draft_vocab_size"
        return size(self.config, key)


class Shape(NamedTuple):
    """How a class differs from the base: its inner model, its layers and what they hold, its heads.

    With `own_head` it may quantize a head of its own; `reduced` says for which sizes of
    the draft's and the target's vocabulary it maps one to the other.
    """

    model: str
    layer: str = "DFlashQwen3DecoderLayer"
    attention: str = "DFlashQwen3Attention"
    mlp: str = "Qwen2MLP"
    convolutions: Callable[[Draft], bool] = lambda draft: False
    beam: bool = False
    head: Head | None = None
    own_head: bool = False
    reduced: Callable[[int, int], bool] = lambda own, target: own != target
    check: Callable[[Draft], None] = lambda draft: None


def build(
    model_class: str,
    shape: Shape,
    draft: Draft,
    quant: QuantConfig | None,
    own_head: QuantConfig | None,
    tp: int,
    capability: int,
) -> Tree:
    """Build the tree of a draft.

    Args:
        model_class: the engine's class, of that `shape`.
        quant: the quantization config of its layers, None for a dense draft.
        own_head: the config that a head of its own is built with.
        tp: ranks; shapes are those of rank 0.
        capability: the card's, times ten.

    Raises:
        Refused: a constructor raises.
        NotModelled: a quantization method leaves the modelled ground.
    """
    assembly = Assembly(quant, tp, capability, Tree())
    assembly.container("", model_class)
    shape.check(draft)
    _model(assembly, draft, shape)
    _head(assembly, draft, shape, own_head)
    return assembly.tree


def _model(assembly: Assembly, draft: Draft, shape: Shape) -> None:
    config, hidden = draft.config, draft.hidden_size
    aux = True if shape.beam else uses_aux(config)
    tokens = integer(config, "vocab_size")
    own = () if shape.beam else (Parameter("mask_embedding", (hidden,), MODEL_DTYPE, defaulted=True),)
    assembly.container("model", shape.model, *own)
    assembly.embedding("model.embed_tokens", tokens, hidden, "model.embed_tokens")
    assembly.container("model.layers", "ModuleList")
    for layer in range(draft.num_layers):
        _layer(assembly, draft, shape, layer)
    if aux:
        inputs = _fc_inputs(draft, shape.beam)
        assembly.replicated("model.fc", inputs, hidden, "model.fc", quantized=not shape.beam)
    assembly.norm("model.hidden_norm", hidden)
    assembly.norm("model.norm", hidden)
    real(config, "rms_norm_eps")
    if shape.head is not None:
        shape.head(assembly, draft)


def uses_aux(config: Config) -> bool:
    """Whether the target's features are projected; refused where the tables cannot be put together."""
    eagle, inner = config.get("eagle_config", {}), config.get("dflash_config", {})
    # A dict can be updated with an empty list, and is.
    for part in (eagle, {} if inner in ([], "") else inner):
        if not isinstance(part, Mapping):
            raise Refused(f"dflash_config and eagle_config must be objects, got {part!r}")
    joined = {**eagle, **nested(config)}
    return bool(joined.get("use_aux_hidden_state", config.get("use_aux_hidden_state", True)))


def _fc_inputs(draft: Draft, beam: bool) -> int:
    if beam:
        ids = draft.inner.get("target_layer_ids")
        if not isinstance(ids, list | str | Mapping):
            raise Refused(f"dflash_config.target_layer_ids must be a list, got {ids!r}")
        return draft.hidden_size * len(ids)
    asked = taps(draft.config)
    features = len(asked.counted) if asked else draft.num_layers
    return size(draft.config, width_key(draft.config)) * features


def width_key(config: Config) -> str:
    """The key whose number is the width of a tapped feature."""
    return "target_hidden_size" if config.get("target_hidden_size") else "hidden_size"


def _layer(assembly: Assembly, draft: Draft, shape: Shape, layer: int) -> None:
    config, hidden = draft.config, draft.hidden_size
    name, prefix = f"model.layers.{layer}", f"model.layers.{layer + draft.target.layers}"
    assembly.container(name, shape.layer)
    _attention(assembly, draft, shape, layer, f"{name}.self_attn", f"{prefix}.self_attn")
    inner = integer(config, "intermediate_size")
    quantized = not shape.beam
    assembly.container(f"{name}.mlp", shape.mlp)
    assembly.merged_column(
        f"{name}.mlp.gate_up_proj", hidden, (inner, inner), f"{prefix}.mlp.gate_up_proj", quantized
    )
    assembly.row(f"{name}.mlp.down_proj", inner, hidden, f"{prefix}.mlp.down_proj", quantized=quantized)
    if not shape.beam and needed(config, "hidden_act") != "silu":
        raise Refused(f"unsupported activation: {config['hidden_act']}, only silu is supported")
    assembly.norm(f"{name}.input_layernorm", hidden)
    assembly.norm(f"{name}.post_attention_layernorm", hidden)
    if shape.convolutions(draft):
        for part in ("attention_conv", "mlp_conv"):
            _convolution(assembly, draft, f"{name}.{part}", f"{prefix}.{part}", quantized)


def _attention(assembly: Assembly, draft: Draft, shape: Shape, layer: int, name: str, prefix: str) -> None:
    config, hidden, quantized = draft.config, draft.hidden_size, not shape.beam
    heads, kv_heads = integer(config, "num_attention_heads"), integer(config, "num_key_value_heads")
    head_dim = integer(config, "head_dim") if config.get("head_dim") else _head_dim(hidden, heads)
    _check_heads(heads, kv_heads, assembly.tp)
    if shape.beam:
        _check_beam(config, layer)
        bias = False
        sinks: tuple[Parameter, ...] = ()
    else:
        bias = truthy(config.get("attention_bias", False))
        _check_window(config, layer)
        sinks = _sinks(config, heads // assembly.tp)
    assembly.container(name, shape.attention, *sinks)
    assembly.qkv(f"{name}.qkv_proj", hidden, head_dim, heads, kv_heads, f"{prefix}.qkv_proj", bias, quantized)
    assembly.row(f"{name}.o_proj", heads * head_dim, hidden, f"{prefix}.o_proj", bias, quantized)
    check_rope(config, head_dim)
    if heads % kv_heads:
        raise Refused(f"num_heads ({heads}) is not divisible by num_kv_heads ({kv_heads})")
    assembly.attention(f"{name}.attn", f"{prefix}.attn", head_dim, bool(sinks), quantized)
    assembly.norm(f"{name}.q_norm", head_dim)
    assembly.norm(f"{name}.k_norm", head_dim)


def _head_dim(hidden: int, heads: int) -> int:
    if heads == 0:
        raise Refused("num_attention_heads must not be zero")
    return hidden // heads


def _check_heads(heads: int, kv_heads: int, tp: int) -> None:
    if heads % tp or heads <= 0:
        raise Refused(f"num_attention_heads {heads} is not divisible by {tp} ranks")
    if kv_heads <= 0 or (kv_heads % tp if kv_heads >= tp else tp % kv_heads):
        raise Refused(f"num_key_value_heads {kv_heads} does not go with {tp} ranks")


def _check_beam(config: Config, layer: int) -> None:
    types = needed(config, "layer_types")
    if not isinstance(types, list) or layer >= len(types) or types[layer] != SLIDING:
        raise Refused("every layer of a Beam draft must be of sliding_attention")
    if needed(config, "is_causal"):
        raise Refused("a Beam draft must not be causal")


def _sinks(config: Config, heads: int) -> tuple[Parameter, ...]:
    said = nested(config).get("attention_sink_bias", config.get("add_swa_attention_sink_bias", False))
    if not truthy(said):
        return ()
    return (Parameter("attention_sink_bias", (heads,), MODEL_DTYPE, Placement(Kind.SHARDED)),)


def _check_window(config: Config, layer: int) -> None:
    """Refuse a sliding layer without a window (`_resolve_layer_attention`)."""
    inner, types = nested(config), config.get("layer_types")
    all_slide = truthy(inner.get("use_swa", False))
    if types is not None and not isinstance(types, list):
        raise Refused(f"layer_types must be a list of attention types, got {types!r}")
    if types is None or (all_slide and SLIDING not in types):
        slides = all_slide
    elif layer >= len(types):
        raise Refused(f"layer_types has {len(types)} entries, none for layer {layer}")
    else:
        slides = types[layer] == SLIDING
    window = inner.get("swa_window_size", config.get("sliding_window"))
    if slides and not isinstance(window, int | float):
        said = "" if window is None else f", a number: {window!r} is none"
        raise Refused(f"sliding layers want dflash_config.swa_window_size or sliding_window{said}")


def _convolution(assembly: Assembly, draft: Draft, name: str, prefix: str, quantized: bool) -> None:
    taps, group = integer(draft.inner, "conv_kernel_size"), integer(draft.inner, "conv_group_size")
    hidden = draft.hidden_size
    if group == 0 or hidden % group:
        raise Refused(f"conv_group_size={group} must divide hidden_size={hidden}")
    kernel = Parameter("base_kernel", (2, taps, hidden), MODEL_DTYPE)
    assembly.container(name, "DFlashGroupedConv", kernel)
    outputs = 2 * taps * (hidden // group)
    assembly.replicated(
        f"{name}.kernel_projection", hidden, outputs, f"{prefix}.kernel_projection", quantized=quantized
    )


def _selector(assembly: Assembly, draft: Draft, module_class: str) -> None:
    real(draft.inner, "input_embedding_scale", 1.0)
    rank, tokens = integer(draft.inner, "selector_rank"), integer(draft.config, "vocab_size")
    integer(draft.inner, "selector_top_k")
    at = "model.candidate_selector"
    books = ("predecessor_codebook", "successor_codebook")
    assembly.container(at, module_class, *(Parameter(book, (tokens, rank), MODEL_DTYPE) for book in books))
    projection = f"{at}.hidden_projection"
    assembly.replicated(projection, draft.hidden_size, rank, projection, quantized=False)


def _markov(assembly: Assembly, draft: Draft) -> None:
    markov_head(assembly, draft, quantized=True)


def markov_head(assembly: Assembly, draft: Draft, quantized: bool) -> None:
    """The two heads of a DSpark draft: `DSparkMarkovHead`, and `DSparkConfidenceHead` where there is one."""
    config, at = draft.config, "model.markov_head"
    rank, tokens = size(config, "markov_rank"), integer(config, "vocab_size")
    own = size(config, "draft_vocab_size") if config.get("draft_vocab_size") else tokens
    assembly.container(at, "DSparkMarkovHead")
    first = Parameter("weight", (tokens, rank), MODEL_DTYPE)
    assembly.container(f"{at}.markov_w1", "Embedding", first)
    assembly.head(f"{at}.markov_w2", own, rank, f"{at}.markov_w2", quantized=quantized, shared=False)
    if truthy(config.get("enable_confidence_head", False)):
        with_markov = truthy(config.get("confidence_head_with_markov", False))
        width = draft.hidden_size + (rank if with_markov else 0)
        assembly.container("model.confidence_head", "DSparkConfidenceHead")
        proj = "model.confidence_head.proj"
        assembly.replicated(proj, width, 1, proj, bias=True, quantized=False, dtype="float32")


def _refiner(assembly: Assembly, draft: Draft) -> None:
    """`XPressRefinerHead`, of torch's own layers in the dtype that torch makes them in."""
    config, hidden, at = draft.config, draft.hidden_size, "model.xpress_head"
    tokens, rank = integer(config, "vocab_size"), integer(config, "xpress_rank", 256)
    middle = size(config, "xpress_mlp_hidden", 512)
    integer(config, "xpress_topc", 512)
    by_steps = not config.get("xpress_block_size")
    block = (
        size(config, "num_speculative_steps", 15) + 1 if by_steps else size(config, "xpress_block_size", 0)
    )
    mix = Parameter("mix_L", (rank, block, block), MODEL_DTYPE)
    assembly.container(at, "XPressRefinerHead", mix)
    assembly.container(f"{at}.w1", "Embedding", Parameter("weight", (tokens, rank), MODEL_DTYPE))
    for name, inputs, outputs in (
        ("down_h", hidden, rank), ("down_g", hidden, rank), ("in_proj", 3 * rank, rank),
        ("mlp_gate", rank, middle), ("mlp_up", rank, middle), ("mlp_down", middle, rank),
        ("w2", rank, tokens),
    ):  # fmt: skip
        assembly.dense(f"{at}.{name}", inputs, outputs)


def _head(assembly: Assembly, draft: Draft, shape: Shape, own_head: QuantConfig | None) -> None:
    # A Beam draft's class reads no size of its own.
    own = integer(draft.config, "vocab_size") if shape.beam else draft.draft_vocab_size
    target = draft.target.vocab_size
    quantized = shape.own_head and truthy(draft.config.get("has_own_lm_head", False))
    heads = assembly._replace(quant=own_head)
    heads.head("lm_head", own, draft.hidden_size, "lm_head", quantized=quantized, shared=True)
    if not shape.beam and shape.reduced(own, target):
        mapping = Parameter("draft_id_to_target_id", (own,), "int64", defaulted=True)
        root = assembly.tree.modules[""]
        assembly.container("", root.module_class, mapping)


def _always(draft: Draft) -> bool:
    del draft
    return True


def _check_xpress(draft: Draft) -> None:
    if draft.draft_vocab_size != draft.target.vocab_size:
        raise Refused("XPress currently requires a draft of the target's whole vocabulary")


def _check_reading(draft: Draft) -> None:
    """What a class reads of `dflash_config` before it builds."""
    if not isinstance(draft.config.get("dflash_config"), Mapping):
        raise Refused("the config has no dflash_config")


def _dflash2(assembly: Assembly, draft: Draft) -> None:
    _selector(assembly, draft, "CandidateSelector")


def _beam(assembly: Assembly, draft: Draft) -> None:
    _selector(assembly, draft, "DFlash2BeamCandidateSelector")
    real(draft.inner, "final_logit_softcapping")


SHAPES: Final[dict[str, Shape]] = {
    architectures.PLAIN: Shape("DFlashQwen3Model", own_head=True),
    architectures.DFLASH2: Shape(
        "DFlash2Qwen3Model",
        layer="DFlash2Qwen3DecoderLayer",
        convolutions=_always,
        head=_dflash2,
        own_head=True,
        check=_check_reading,
    ),
    architectures.BEAM: Shape(
        "DFlash2BeamModel",
        layer="DFlash2BeamDecoderLayer",
        attention="DFlash2BeamAttention",
        mlp="DFlash2BeamMLP",
        convolutions=_always,
        beam=True,
        head=_beam,
        check=_check_reading,
    ),
    architectures.DSPARK_OF_QWEN3: Shape(
        "Qwen3DSparkModel", head=_markov, reduced=lambda own, target: own < target
    ),
    architectures.XPRESS: Shape(
        "Qwen3XPressModel", head=_refiner, reduced=lambda own, target: False, check=_check_xpress
    ),
}
"""Class of the engine -> its shape; those that are not here have a file of their own."""
