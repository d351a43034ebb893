"""The draft loads, and the server stops as it makes the part that proposes its tokens.

vLLM asks the config for more than its classes do: the token that stands for the ones to be drafted, and
whether a block's first row is sampled. Of a Laguna and of a Gemma 4 draft it also takes the weights of the
keys and values apart, to compute those of the context: they have to be dense there.

## Why it matters

The server does not start. The tensors are all in place, and the message names a key.

## Example

Before: the block's first row is a prediction, which vLLM knows of DSpark drafts alone.

    "dflash_config": {"mask_token_id": 151669, "sample_from_anchor": true}

After, for a draft that was trained so:

    "dflash_config": {"mask_token_id": 151669}

## How to fix

Write the `mask_token_id` that the draft was trained with. A DFlash draft that was trained to predict from
the anchor needs another engine: name it in the model card.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis.vllm_draft import is_vllm
from dflash_audit.diagnosis.vllm_mask_token import named_mask
from dflash_audit.dtypes import DENSE_FLOATS
from dflash_audit.engine_run import EngineRun
from dflash_audit.engines.vllm.architectures import GEMMA4, LAGUNA, XPRESS
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.tree import Module, Parameter

CONTEXT: Final[Mapping[str, str]] = {LAGUNA: "qkv_proj", GEMMA4: "k_proj"}
"""Class -> the layer of whose `weight` it makes one for the context of all layers.

Source: vLLM 0.33.0 `model_executor/models/laguna_dflash.py` and `gemma4_dspark.py`,
`_build_context_kv_buffers` and `_project_context_kv`; the other classes call the layer itself.
"""


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding for the mask token, one for the anchor, one for layers that cannot be taken apart.

    Source: vLLM 0.33.0 `v1/worker/gpu/spec_decode/utils.py`, `get_parallel_drafting_token_id`;
    `dflash/speculator.py` and `xpress/speculator.py` there.
    """
    del checkpoint
    config = run.config
    if not is_vllm(run.engine) or config is None or run.plan is None or run.refusal is not None:
        return
    inner = config.get("dflash_config")
    inner = inner if isinstance(inner, Mapping) else {}
    yield from _context(run)
    fault = _mask(config)
    if fault is not None:
        hint = "Write the mask_token_id that the draft was trained with into dflash_config."
        yield _finding(run, "mask_token_id", fault, hint)
    nested = bool(inner.get("sample_from_anchor"))
    if nested or (run.model_class == XPRESS and config.get("sample_from_anchor")):
        key = "dflash_config.sample_from_anchor" if nested else "sample_from_anchor"
        yield _finding(
            run,
            key,
            f"{key} is true, and this engine samples no first row of a block for such a draft",
            "Set it to false if the draft was not trained so; else name another engine in the model card.",
        )


def _context(run: EngineRun) -> Iterator[Finding]:
    """What stands in the way of the weights for the context."""
    layer = CONTEXT.get(run.model_class or "")
    modules = {} if layer is None or run.tree is None else run.tree.modules
    found = [module for name, module in modules.items() if name.endswith(f".self_attn.{layer}")]
    held = [next((p for p in module.parameters if p.name == "weight"), None) for module in found]
    quantized = [module.name for module, weight in zip(found, held, strict=True) if not _dense(weight)]
    if quantized:
        yield _finding(
            run,
            quantized[0],
            f"{quantized[0]} is quantized, and this class computes the keys and values of the context with"
            " its plain weight",
            f"Leave {layer} out of the recipe and quantize again, with {layer} in the list of layers to leave"
            " dense.",
        )
    split = [module.name for module in found if run.model_class == GEMMA4 and _splits_heads(module, modules)]
    if split:
        yield _finding(
            run,
            split[0],
            f"{split[0]} has a part of a head on each rank, for this class shares its key heads out over the"
            " ranks and repeats none",
            "Serve on a number of ranks (--tp) by which the key heads of every layer can be divided.",
        )
    if run.model_class == GEMMA4 and any(name.endswith(".self_attn.v_proj") for name in modules):
        yield _finding(
            run,
            "attention_k_eq_v",
            "a layer has values of its own, and this class takes the context's from its keys, in every layer",
            "Serve a draft whose layers are all of full_attention with attention_k_eq_v.",
        )


def _splits_heads(keys: Module, modules: Mapping[str, Module]) -> bool:
    """Whether a rank's rows of a key layer are no whole heads; the norm behind it is as wide as one."""
    norm = modules.get(keys.name.replace("k_proj", "k_norm"))
    width = norm.parameters[0].shape[0] if norm is not None and norm.parameters else 0
    return bool(keys.linear and width and keys.linear.output_size_per_partition % width)


def _dense(weight: Parameter | None) -> bool:
    return weight is not None and weight.dtype in DENSE_FLOATS


def _mask(config: Mapping[str, Any]) -> str | None:
    """What is wrong with the first key of the mask token that counts."""
    named = named_mask(config)
    if named is None:
        return "config.json names no mask_token_id"
    return None if named.token is not None else f"{named.key} is {named.value!r}, which is no token's id"


def _finding(run: EngineRun, key: str, why: str, hint: str) -> Finding:
    message = f"{why}: {run.engine} loads the draft, and does not start."
    return Finding("refused-start", "error", run.engine, key, message, hint, (key,))
