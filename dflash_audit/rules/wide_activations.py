"""This card has no kernel for the quantized activations, and the layers run weight-only.

A checkpoint for NVFP4 or FP8 on both sides names scales for activations. A card without such arithmetic
(NVFP4 below compute capability 10.0, FP8 below 8.9) is given the Marlin kernel, which widens the weights
instead.

## Why it matters

It is right and it serves: this is a note. The speed is that of a weight-only scheme, the numbers are closer
to those of the dense draft than on the card that the checkpoint was made for, and so is its acceptance
length.

## Example

Before, where acceptance was measured:

    dflash-audit DRAFT --gpu b200

After, where it serves weight-only:

    dflash-audit DRAFT --gpu h200

## How to fix

Nothing has to be. Measure acceptance and speed on the card that will serve.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.kernel_limits import NATIVE_FP4, NATIVE_FP8
from dflash_audit.diagnosis.sglang_draft import is_sglang
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import title
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.tree import Module


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding for all layers whose activations stay wide on this card."""
    del checkpoint
    if not is_sglang(run) or run.plan is None or run.refusal is not None:
        return
    names = [m.name for m in run.plan.modules.values() if _widened(run, m, conditions.capability)]
    if names:
        card = f"{conditions.capability / 10:.1f}"
        yield Finding(
            rule="wide-activations",
            severity="note",
            engine=run.engine,
            subject=title(names),
            message=(
                f"The checkpoint quantizes activations, and {run.engine} keeps them in BF16 on a card of"
                f" compute capability {card}: the layers run weight-only, on Marlin."
            ),
            subjects=tuple(names),
        )


def _widened(run: EngineRun, module: Module, capability: int) -> bool:
    """Whether a layer meant for quantized activations runs without them.

    Source: SGLang 0.5.23 `_get_scheme_from_parts` in `compressed_tensors.py`,
    `initialize_fp4_gemm_config` in `fp4_utils.py`, `can_auto_enable_marlin_fp8` in `fp8_utils.py`.
    """
    if module.scheme is None:
        return False
    match module.scheme.name:
        case "CompressedTensorsW4A16Fp4":
            return any(p.name == "input_global_scale" for p in module.parameters)
        case "ModelOptFp4LinearMethod":
            # By its name it quantizes activations; a weight-only export comes without their scales.
            return capability < NATIVE_FP4 and _filled(run, f"{module.name}.input_scale")
        case "Fp8LinearMethod":
            return capability < NATIVE_FP8
        case "CompressedTensorsW8A16Fp8":
            return capability < NATIVE_FP8 and _asks_for_activations(run)
    return False


def _filled(run: EngineRun, parameter: str) -> bool:
    return run.plan is not None and parameter in run.plan.filled()


def _asks_for_activations(run: EngineRun) -> bool:
    # Only here: few schemes need to know.
    from dflash_audit.quantization.compressed_tensors.config import CompressedTensors

    config = run.quant_config
    return isinstance(config, CompressedTensors) and any(g.activations for g in config.groups.values())
