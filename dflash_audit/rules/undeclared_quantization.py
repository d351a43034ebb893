"""The tensors are quantized, and nothing declares a quantization.

Neither `quantization_config` in config.json nor hf_quant_config.json says how. An export that rewrites
config.json loses it easily.

## Why it matters

The engine builds every layer dense. Packed tensors have no place in it and are dropped; FP8 and INT8
numbers are copied into dense weights without their scales.

## Example

Before:

    {"architectures": ["DFlashDraftModel"], …}

After, as the quantizer wrote it:

    {"architectures": ["DFlashDraftModel"], …,
     "quantization_config": {"quant_method": "compressed-tensors", …}}

## How to fix

Restore the config that the quantizer wrote: the finding says which layout the tensors have.
"""

from collections.abc import Iterator, Sequence

from dflash_audit.diagnosis.lost_config import RESTORE
from dflash_audit.diagnosis.stored import State, Stored, built_otherwise, stored_in
from dflash_audit.diagnosis.stored_layout import layout
from dflash_audit.engine_run import EngineRun
from dflash_audit.facts import Facts
from dflash_audit.finding import Finding
from dflash_audit.fold import title
from dflash_audit.tree import Module


def find(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    """One finding for all modules that are quantized on disk, where every engine builds a dense draft."""
    del findings
    built = [run for run in facts.runs if run.plan is not None]
    if not built or any(run.quantization is not None for run in facts.runs if run.skipped is None):
        return
    quantized = _quantized(built[0])
    if quantized:
        first, module = quantized[0]
        names = tuple(stored.name for stored, _ in quantized)
        many = "1 module is" if len(names) == 1 else f"{len(names)} modules are"
        yield Finding(
            rule="undeclared-quantization",
            severity="warning",
            engine=None,
            subject=title(names),
            message=(
                f"{many} quantized on disk, and neither config.json nor"
                " hf_quant_config.json declares it: every layer is built dense."
                f" They look like {layout(first, _inputs(module))}."
            ),
            hint=RESTORE,
            subjects=names,
        )


def _quantized(run: EngineRun) -> list[tuple[Stored, Module]]:
    """What is quantized on disk of linears that the engine builds."""
    assert run.plan is not None
    odd = built_otherwise(run)
    parts = stored_in(run.plan.modules, run.plan.tensors)
    found = [(part, run.plan.modules[name]) for name in odd for part in parts[name]]
    return [(part, module) for part, module in found if part.state is State.QUANTIZED]


def _inputs(module: Module) -> int:
    """The inputs of a module that is built dense."""
    return next(p.shape[-1] for p in module.parameters if p.name == "weight")
