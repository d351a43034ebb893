"""The tree of a Gemma 4 DSpark draft, and its load, which passes over every name that it does not know.

Source: vLLM 0.33.0 `model_executor/models/gemma4_dspark.py`, `gemma4_mtp.py` (layer and attention) and
`gemma4.py` (`Gemma4MLP`); `layers/activation.py`.
"""

from collections.abc import Mapping, Sized
from typing import Any, Final

from dflash_audit.copying import incoming
from dflash_audit.engines.vllm.architectures import GEMMA4
from dflash_audit.engines.vllm.assembly import MODEL_DTYPE, Assembly
from dflash_audit.engines.vllm.draft import Draft, markov_head
from dflash_audit.engines.vllm.fields import Config, integer, needed, real, truthy
from dflash_audit.engines.vllm.quantization.compressed_tensors import CompressedTensors
from dflash_audit.engines.vllm.quantization.config import QuantConfig
from dflash_audit.engines.vllm.quantization.fp8 import Fp8
from dflash_audit.engines.vllm.quantization.gptq import Gptq
from dflash_audit.engines.vllm.rope import check_base, check_rope
from dflash_audit.engines.vllm.weight_loaders import place
from dflash_audit.hf_config.layer_types import FULL, HEADS_BY_LAYER, SLIDING
from dflash_audit.loadplan import Fill, LoadPlan, Shard
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.tree import Linear, Parameter, Scheme, Tree

ACTIVATIONS: Final = ("gelu", "gelu_pytorch_tanh", "silu", "swish", "geglu", "swigluoai")

STACKED: Final[tuple[tuple[str, Shard], ...]] = (("gate_proj", 0), ("up_proj", 1))
"""The matrices of `gate_up_proj`."""

FILLED_BUFFERS: Final = ("layer_scalar", "normalizer")
"""Buffers that the loader fills by name as it fills parameters, each one number with a right value."""

LISTS: Final = ("ignore", "ignored_layers", "modules_to_not_convert")
REPLAYED: Final = (CompressedTensors, Fp8, Gptq)

LOCAL_BASE: Final = 10000.0
"""The rotary base of a sliding layer whose config has one set of rotary parameters for all."""


def build(draft: Draft, quant: QuantConfig | None, tp: int, capability: int) -> Tree:
    """Build the tree; raises as `draft.build` does."""
    config, hidden = draft.config, draft.hidden_size
    _check_rewritten(config, quant)
    if config.get("is_causal") is None and not isinstance(config.get("dflash_config") or {}, Mapping):
        raise Refused("dflash_config must be an object")
    assembly = Assembly(quant, tp, capability, Tree())
    tokens = integer(config, "vocab_size")
    assembly.container("", GEMMA4)
    # Its loader fills buffers by name as it fills parameters.
    assembly.container("model", "Gemma4DSparkModel", Parameter("normalizer", (), MODEL_DTYPE, defaulted=True))
    assembly.embedding("model.embed_tokens", tokens, hidden, "model.embed_tokens")
    assembly.replicated("model.fc", hidden * len(_taps(config)), hidden, "model.fc")
    assembly.norm("model.hidden_norm", hidden)
    assembly.container("model.layers", "ModuleList")
    for layer in range(draft.num_layers):
        _layer(assembly, draft, layer)
    assembly.norm("model.norm", hidden)
    real(config, "rms_norm_eps")
    markov_head(assembly, draft, quantized=False)
    assembly.head("lm_head", tokens, hidden, "lm_head", quantized=False, shared=True)
    return assembly.tree


def check_heads(draft: Draft, tp: int) -> None:
    """Refuse heads that cannot be shared out over `tp` ranks, or over the key and value heads of one."""
    config, heads = draft.config, integer(draft.config, "num_attention_heads")
    if not draft.num_layers:
        raise Refused("a model must have at least one layer")
    if heads <= 0 or heads % tp:
        raise Refused(f"num_attention_heads {heads} is not divisible by {tp} ranks")
    for layer in range(draft.num_layers):
        own, own_keys = heads // tp, max(1, _heads(config, layer)[1] // tp)
        if own % own_keys:
            raise Refused(f"num_heads ({own}) is not divisible by num_kv_heads ({own_keys})")


def _heads(config: Config, layer: int) -> tuple[int, int]:
    """The width and the number of the key heads of a layer."""
    found = config[HEADS_BY_LAYER][layer]
    if not all(isinstance(number, int) for number in found):
        raise Refused(f"the heads of layer {layer} are no whole numbers: {found!r}")
    width, number = found
    return width, number


def _taps(config: Config) -> Sized:
    named = config.get("dspark_target_layer_ids") or needed(config, "target_layer_ids")
    if not isinstance(named, list | str | Mapping):
        raise Refused(f"target_layer_ids must be a list of layers, got {named!r}")
    return named


def _layer(assembly: Assembly, draft: Draft, layer: int) -> None:
    config, hidden, name = draft.config, draft.hidden_size, f"model.layers.{layer}"
    assembly.container(
        name, "Gemma4DSparkDecoderLayer", Parameter("layer_scalar", (1,), MODEL_DTYPE, defaulted=True)
    )
    kind = config["layer_types"][layer]
    _attention(assembly, config, f"{name}.self_attn", layer, kind)
    size = integer(config, "intermediate_size")
    assembly.container(f"{name}.mlp", "Gemma4MLP")
    _check_parts(assembly, f"{name}.mlp", hidden, size)
    assembly.merged_column(f"{name}.mlp.gate_up_proj", hidden, (size, size), f"{name}.mlp.gate_up_proj")
    assembly.row(f"{name}.mlp.down_proj", size, hidden, f"{name}.mlp.down_proj")
    activation = str(config["hidden_activation"])
    if activation.lower() not in ACTIVATIONS:
        raise Refused(f"unsupported activation: {activation}, only {', '.join(ACTIVATIONS)}")
    for norm in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
        assembly.norm(f"{name}.{norm}_layernorm", hidden)


def _check_rewritten(config: Config, quant: QuantConfig | None) -> None:
    """Leave out what vLLM makes anew of a quantization config for this class alone.

    Source: `configure_quant_config` in `model_executor/model_loader/utils.py`, and each method's
    `apply_vllm_mapper`, which changes nothing in a list of names of these.
    """
    if quant is None:
        return
    declared = config.get("quantization_config")
    lists = [declared.get(key) for key in LISTS] if isinstance(declared, Mapping) else []
    if not isinstance(quant, REPLAYED) or not all(isinstance(each, list | None) for each in lists):
        raise NotModelled("a Gemma 4 draft with such a quantization config is not replayed")
    names = quant.ignore if isinstance(quant, CompressedTensors) else None
    names = quant.ignored if isinstance(quant, Fp8) else names
    if any(not isinstance(name, str) for name in names or ()):
        raise Refused(f"the layers to leave dense must be names, got {names!r}")


def _check_parts(assembly: Assembly, name: str, inputs: int, outputs: int) -> None:
    """This class alone tells its quantization config what `gate_up_proj` is made of.

    Whatever a method makes of that, it asks for the whole or for both parts. Where all three get the same
    answer it is that one; what it is where they do not is not replayed.
    """
    quant = assembly.quant
    if quant is None:
        return
    part = assembly.divide(outputs)
    layer = Linear("MergedColumnParallelLinear", "", inputs, (outputs,) * 2, inputs, (part,) * 2)
    names = [f"{name}.{asked}" for asked in ("gate_up_proj", "gate_proj", "up_proj")]
    answers = [_answer(quant, layer._replace(prefix=asked)) for asked in names]
    if any(answer != answers[0] for answer in answers):
        raise NotModelled("a list that tells gate_up_proj from its parts is not replayed for Gemma 4 drafts")


def _answer(quant: QuantConfig, layer: Linear) -> tuple[Scheme | None, bool]:
    """The scheme that a layer would get, None for a refusal; and whether an entry leaves it dense."""
    left = any(quant.leaves_dense(entry, layer.prefix) for entry in quant.left_dense)
    try:
        return quant.linear(layer), left
    except Refused:
        return None, left


def _attention(assembly: Assembly, config: Config, name: str, layer: int, kind: str) -> None:
    (head_dim, kv_heads), hidden = _heads(config, layer), integer(config, "hidden_size")
    heads = integer(config, "num_attention_heads")
    bias = truthy(config.get("attention_bias", False))
    assembly.container(name, "Gemma4DSparkAttention")
    assembly.column(f"{name}.q_proj", hidden, heads * head_dim, f"{name}.q_proj", bias)
    assembly.row(f"{name}.o_proj", heads * head_dim, hidden, f"{name}.o_proj", bias)
    check_rope({**config, "rope_parameters": _rope(config, kind)}, head_dim)
    assembly.attention(f"{name}.attn", f"{name}.attn", head_dim)
    assembly.norm(f"{name}.q_norm", head_dim)
    assembly.column(f"{name}.k_proj", hidden, kv_heads * head_dim, f"{name}.k_proj", bias)
    if not (kind == FULL and truthy(config.get("attention_k_eq_v", False))):
        assembly.column(f"{name}.v_proj", hidden, kv_heads * head_dim, f"{name}.v_proj", bias)
    assembly.norm(f"{name}.k_norm", head_dim)


def _rope(config: Config, kind: str) -> Any:
    parameters = needed(config, "rope_parameters")
    if not isinstance(parameters, Mapping):
        raise Refused(f"the rope parameters must be an object, got {parameters!r}")
    own = parameters.get(kind, parameters)
    if not isinstance(own, Mapping):
        raise Refused(f"the rope parameters of {kind} must be an object, got {own!r}")
    if kind not in parameters and kind == SLIDING:
        return {**parameters, "rope_theta": config.get("rope_local_base_freq", LOCAL_BASE)}
    if parameters:
        check_base(own, config, kind)
    return own


def load_one(plan: LoadPlan, tensor: Tensor) -> None:
    """One tensor into the parameter of its name, or into none; raises what its loader refuses."""
    name = tensor.name if "lm_head" in tensor.name else f"model.{tensor.name}"
    shard: Shard | None = None
    for theirs, part in STACKED:
        mapped = name.replace(theirs, "gate_up_proj")
        if theirs in name and mapped in plan.slots:
            name, shard = mapped, part
            break
    slot = plan.slots.get(name)
    if slot is None:
        return
    held = incoming(tensor)
    plan.fill(tensor, Fill(slot, shard, held.dtype, place(slot.module, slot.parameter, held, shard)))
