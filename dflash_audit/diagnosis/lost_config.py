"""What to do about quantized tensors that no config declares; no rule of its own."""

from typing import Final

from dflash_audit.diagnosis.stored import State, stored_modules
from dflash_audit.engine_run import EngineRun

RESTORE: Final = "Restore the quantization_config that the quantizer wrote."


def restore(run: EngineRun, tensor: str) -> str | None:
    """The mend for a tensor of a quantized module where nothing tells the engine of a quantization."""
    if run.plan is None or run.quantization is not None:
        return None
    stored = stored_modules(run.plan.tensors).get(tensor.removeprefix("model.").rpartition(".")[0])
    return RESTORE if stored is not None and stored.state is State.QUANTIZED else None
