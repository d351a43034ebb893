"""The engine `sglang@installed`."""

from typing import TYPE_CHECKING, Final

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.installed.engine import Installed
from dflash_audit.engines.installed.packages import SGLANG
from dflash_audit.engines.installed.process import Job
from dflash_audit.engines.installed.reading import Reading
from dflash_audit.engines.sglang_installed.own_values import unfilled
from dflash_audit.engines.sglang_installed.quantization import quant_config
from dflash_audit.sources.checkpoint import Checkpoint

if TYPE_CHECKING:
    from dflash_audit.forward import Forward


def job(checkpoint: Checkpoint, conditions: Conditions) -> Job:
    """The server's options for a draft."""
    del checkpoint
    return {"quantization": conditions.quantization, "attention_backend": conditions.attention_backend}


def forward(run: EngineRun) -> "Forward":
    """What the draft of `run` computes. Its config is read as the profiles read it."""
    # Only here: an audit without a warm-up does without.
    from dflash_audit.engines.sglang.forward import forward_of

    assert run.config is not None and run.model_class is not None  # else it stopped before
    return forward_of(run.config, run.model_class)


INSTALLED: Final = Installed(SGLANG, job, Reading(quant_config, unfilled), forward)
