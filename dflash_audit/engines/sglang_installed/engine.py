"""The engine `sglang@installed`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.sglang_installed.folder import as_folder
from dflash_audit.engines.sglang_installed.installed import HOW_TO_INSTALL, installed_version
from dflash_audit.engines.sglang_installed.process import ENGINE, Job, Process, failed
from dflash_audit.engines.sglang_installed.reading import read_record
from dflash_audit.sources.checkpoint import Checkpoint

if TYPE_CHECKING:
    from dflash_audit.forward import Forward


@dataclass(frozen=True, slots=True)
class InstalledSGLang:
    """SGLang as it is installed here: a child process imports it, which takes a quarter of a minute."""

    name: str = ENGINE

    def replay(self, checkpoint: Checkpoint, conditions: Conditions) -> EngineRun:
        """What the installed version itself does with `checkpoint`, on one rank.

        Raises `Unreadable` (engine-failed) where the engine itself cannot be asked.
        """
        if installed_version() is None:
            raise failed(f"SGLang is not installed; {HOW_TO_INSTALL}")
        if conditions.tp != 1:
            raise failed("it builds one rank alone, so it takes no --tp")
        with Process(conditions.capability) as process:
            return replay_in(process, checkpoint, conditions)

    def forward(self, run: EngineRun) -> "Forward":
        """What the draft of `run` computes; see `Engine`. Its config is read as the profiles read it."""
        # Only here: an audit without a warm-up does without.
        from dflash_audit.engines.sglang.forward import forward_of

        assert run.config is not None and run.model_class is not None  # else it stopped before
        return forward_of(run.config, run.model_class)


def replay_in(process: Process, checkpoint: Checkpoint, conditions: Conditions) -> EngineRun:
    """The same in a child that runs already, on the card that it was started for."""
    with as_folder(checkpoint) as folder:
        record = process.ask(Job(folder, conditions.quantization, conditions.attention_backend))
    return read_record(record, process.version, checkpoint, conditions)


INSTALLED: Final = InstalledSGLang()
