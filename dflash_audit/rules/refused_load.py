"""The engine stops while it loads the weights.

A tensor has a shape or a dtype that its parameter does not take, or a check at the end of the load finds
the checkpoint incomplete. `sglang-next` also refuses a tensor whose module the draft has in another layout,
and a checkpoint that fills decoder layers and nothing of `fc`.

## Why it matters

The server stops at the first such tensor; the report names all of them, as if the load went on.

## Example

Before, the shards are spelled by the name of the fused layer, which the next release does not ask about:

    "ignore": ["re:.*gate_up_proj$"]

After, both spellings, for both versions:

    "ignore": ["re:.*gate_up_proj$", "re:.*gate_proj$", "re:.*up_proj$"]

## How to fix

If the module is built in another layout, make the ignore list and the targets of the quantization config
say what is on disk. If a shape does not fit, the sizes in config.json (heads, head_dim, layers tapped) are
not those of the checkpoint.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from dflash_audit.diagnosis import laguna_mixtures
from dflash_audit.diagnosis.lost_config import restore
from dflash_audit.diagnosis.scheme_sizes import scheme_hint
from dflash_audit.diagnosis.stopped import elsewhere
from dflash_audit.diagnosis.vllm_draft import is_vllm
from dflash_audit.engine_run import EngineRun
from dflash_audit.engines.vllm.architectures import LAGUNA
from dflash_audit.finding import Finding
from dflash_audit.fold import kind, title
from dflash_audit.loadplan import LoadPlan

GPTQ: Final = ("gptq", "auto_gptq", "gptq_marlin")
SPLIT: Final = re.compile(r"layers\.\d+\.self_attn\.[qkv]_proj\.\w+")
GPTQ_LEAVES: Final = ("qweight", "qzeros", "scales", "g_idx")


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding for what is refused of one kind of module, in all layers."""
    if run.plan is None:
        return
    groups: dict[str, list[str]] = {}
    one_mlps = laguna_mixtures.one_mlps(run)
    in_mixtures: list[str] = []
    for refusal in run.plan.refusals:
        if refusal.tensor is None:
            yield _finding(run, "the checkpoint", ("the checkpoint",), refusal.reason)
        elif laguna_mixtures.is_of(refusal.tensor, one_mlps):
            in_mixtures.append(refusal.tensor)
        else:
            groups.setdefault(_kind(run.plan, refusal.tensor), []).append(refusal.tensor)
    reasons = {refusal.tensor: refusal.reason for refusal in run.plan.refusals}
    for names in groups.values():
        yield _finding(run, title(names), tuple(names), reasons[names[0]])
    if in_mixtures:
        modules = [*dict.fromkeys(name.rpartition(".")[0] for name in in_mixtures)]
        found = _finding(run, title(modules), tuple(in_mixtures), reasons[in_mixtures[0]])
        yield replace(found, hint=laguna_mixtures.AS_STORED)


def _kind(plan: LoadPlan, tensor: str) -> str:
    module = plan.modules.owner(tensor)
    return kind(tensor if module is None else module.name)


def _finding(run: EngineRun, subject: str, names: tuple[str, ...], reason: str) -> Finding:
    message = f"{run.engine} stops while it loads: {reason.rstrip('.')}."
    hint = elsewhere(run) or _of_vllm(run, names) or restore(run, names[0]) or _hint(reason, names)
    return Finding("refused-load", "error", run.engine, subject, message, hint, names)


def _of_vllm(run: EngineRun, names: tuple[str, ...]) -> str | None:
    """What to do about layouts that vLLM alone does not take."""
    if not is_vllm(run.engine):
        return None
    if (experts := laguna_mixtures.no_experts(run, names)) is not None:
        return experts
    if run.model_class == LAGUNA and all(map(SPLIT.fullmatch, names)):
        # Source: vLLM 0.33.0 `model_executor/models/laguna_dflash.py`, `DFlashLagunaModel.load_weights`.
        return (
            "Store q_proj, k_proj and v_proj of each layer as one tensor, self_attn.qkv_proj.weight, rows"
            " below rows: the load of a Laguna draft fuses nothing, in vLLM alone."
        )
    if all(name.startswith("model.") for name in names):
        return 'Take "model." off the names of the tensors: vLLM puts it there itself.'
    if run.quantization in GPTQ and all(name.rpartition(".")[2] in GPTQ_LEAVES for name in names):
        return (
            "Name the quantized layers in modules_in_block_to_quantize, as vLLM fuses them (qkv_proj, o_proj,"
            " gate_up_proj, down_proj, and fc where it is quantized): by a draft's tensors it finds none."
        )
    return None


def _hint(reason: str, names: tuple[str, ...]) -> str:
    if "whose parameters are" in reason:
        return "Make the ignore list and the targets of the quantization config say what is on disk."
    if "shape" in reason or "dimension" in reason:
        scheme = scheme_hint(names)
        if scheme is not None:
            return scheme
        return "Set the sizes in config.json to those of the tensors, or export the tensors again."
    return (
        "Export the checkpoint again with all of its tensors, or mend the config key that the reason names."
    )
