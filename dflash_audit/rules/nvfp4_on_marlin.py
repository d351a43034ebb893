"""NVFP4 runs on Marlin on this card, and Marlin's path loses a part of the layer.

Below compute capability 10.0 SGLang 0.5.23 multiplies NVFP4 weights by Marlin, weight-only NVFP4 of
ModelOpt on every card. That path adds a bias in the order of Marlin's tiles to outputs that are in their
own, and it does not apply the input scales of `NVFP4_AWQ` (`pre_quant_scale`).

## Why it matters

Nothing objects. The sums come out with the bias of other outputs, or without the scales that the weights
were made for, and the draft accepts less, or nothing.

## Example

Before, on an H200:

    "attention_bias": true, "quantization_config": {"quant_algo": "NVFP4", …}

After: the layers with a bias stay dense.

    "quantization_config": {"quant_algo": "NVFP4", "ignore": ["*_proj"], …}

## How to fix

Leave layers with a bias out of the recipe. Export with `NVFP4` in place of `NVFP4_AWQ`, or serve on a card
of compute capability 10.0 or more.
"""

from collections.abc import Iterable, Iterator

from dflash_audit.diagnosis.kernel_limits import NATIVE_FP4
from dflash_audit.diagnosis.sglang_draft import is_sglang
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.finding import Finding, Severity
from dflash_audit.fold import title
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.tree import Module

FLASHINFER = range(100, 110)
"""Capabilities on which compressed-tensors' weight-only NVFP4 goes to FlashInfer.

Source: SGLang 0.5.23 `_use_flashinfer_bf16_fp4` in `compressed_tensors_w4a16_nvfp4.py`.
"""


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding for the layers whose bias is displaced, one for those whose input scales are not applied.

    Source: SGLang 0.5.23 `prepare_nvfp4_layer_for_marlin` in `marlin_utils_fp4.py` (seen on an H200), and
    `ModelOptFp4LinearMethod.apply` in `modelopt_quant.py`.
    """
    del checkpoint
    if not is_sglang(run) or run.plan is None or run.refusal is not None:
        return
    modules = [m for m in run.plan.modules.values() if _on_marlin(m, conditions.capability)]
    biased = [module.name for module in modules if _has(module, "bias")]
    scaled = [module.name for module in modules if _has(module, "pre_quant_scale")]
    if biased:
        what = f"{run.engine} adds the bias to other outputs than its own"
        hint = "Leave layers with a bias out of the recipe, and ignore them."
        yield _finding(run, biased, "warning", what, hint)
    if scaled:
        what = f"{run.engine} does not multiply the inputs by pre_quant_scale"
        hint = "Export with NVFP4 in place of NVFP4_AWQ, or serve on compute capability 10.0 or more."
        yield _finding(run, scaled, "error", what, hint)


def _on_marlin(module: Module, capability: int) -> bool:
    scheme = module.scheme.name if module.scheme else ""
    if scheme == "CompressedTensorsW4A16Fp4":
        return capability not in FLASHINFER
    on_old = scheme == "ModelOptFp4LinearMethod" and capability < NATIVE_FP4
    return on_old or scheme == "ModelOptNvFp4A16LinearMethod"


def _has(module: Module, parameter: str) -> bool:
    return any(p.name == parameter for p in module.parameters)


def _finding(run: EngineRun, names: Iterable[str], severity: Severity, what: str, hint: str) -> Finding:
    subjects = tuple(names)
    message = f"NVFP4 runs on Marlin here, where {what}: the sums are wrong, and nothing objects."
    return Finding("nvfp4-on-marlin", severity, run.engine, title(subjects), message, hint, subjects)
