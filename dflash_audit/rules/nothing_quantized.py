"""A quantization is declared, and no tensor is quantized.

config.json or hf_quant_config.json says how the weights are stored, and the weights are dense: the config
of another export, or tensors that were merged back in.

## Why it matters

The engine builds quantized layers. Dense numbers are cast down into them, or find no place; their scales
never come.

## Example

Before, over BF16 tensors:

    "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}

After:

    (no quantization_config)

## How to fix

Remove `quantization_config` and hf_quant_config.json, or upload the quantized tensors. To have the server
quantize a dense draft, pass `--speculative-draft-model-quantization fp8` to it.
"""

from collections.abc import Iterator, Sequence

from dflash_audit.diagnosis.stored import State, disagreements, stored_modules
from dflash_audit.facts import Facts
from dflash_audit.finding import Finding

DECLARATIONS = ("quantization_config", "compression_config")
FILE = "hf_quant_config.json"


def find(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    """One finding if an engine that gates builds layers quantized, and every weight is dense."""
    del findings
    tensors = facts.checkpoint.tensors
    declared = next((key for key in DECLARATIONS if facts.checkpoint.config.get(key)), None)
    subject = declared or (FILE if FILE in facts.checkpoint.json_files else None)
    states = {stored.state for stored in stored_modules(tensors).values()} - {None}
    if subject is None or states != {State.DENSE}:
        return
    deciding = [run for run in facts.runs if run.engine in facts.gating]
    built = {run.engine: disagreements(run.plan.modules, tensors) for run in deciding if run.plan}
    method = next((run.quantization for run in facts.runs if built.get(run.engine)), None)
    stranded = max(map(len, built.values()), default=0)
    if stranded:
        yield Finding(
            rule="nothing-quantized",
            severity="warning",
            engine=None,
            subject=subject,
            message=(
                f"{subject} declares {method}, and every weight on disk is dense: {stranded} linears are"
                " built for quantized tensors that are not there."
            ),
            hint=f"Remove {subject}, or upload the quantized tensors.",
            subjects=(subject,),
        )
