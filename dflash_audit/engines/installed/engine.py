"""A live engine: a package, what its child is asked for a checkpoint, and how the answer is read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.installed.folder import as_folder
from dflash_audit.engines.installed.packages import Package
from dflash_audit.engines.installed.process import Job, Process, failed
from dflash_audit.engines.installed.reading import Reading, read_record
from dflash_audit.refusal import NotModelled, Refusal, Refused
from dflash_audit.sources.checkpoint import Checkpoint

if TYPE_CHECKING:
    from dflash_audit.forward import Forward


@dataclass(frozen=True, slots=True)
class Installed:
    """A package as it is installed here: a child process imports it, which takes a quarter of a minute.

    `job` makes what the child is asked beside the folder; it raises `Refused` where no
    server could be started for the draft, and `NotModelled` where none is made up.
    `forward_of` says what a draft computes.
    """

    package: Package
    job: Callable[[Checkpoint, Conditions], Job]
    reading: Reading
    forward_of: Callable[[EngineRun], "Forward"]

    @property
    def name(self) -> str:
        return self.package.engine

    def replay(self, checkpoint: Checkpoint, conditions: Conditions) -> EngineRun:
        """What the installed version itself does with `checkpoint`, on one rank.

        Raises `Unreadable` (engine-failed) where the engine itself cannot be asked.
        """
        if self.package.installed_version() is None:
            raise failed(self.name, f"{self.package.title} is not installed; {self.package.how_to_install}")
        if conditions.tp != 1:
            raise failed(self.name, "it builds one rank alone, so it takes no --tp")
        with Process(self.package, conditions.capability) as process:
            return self.replay_in(process, checkpoint, conditions)

    def replay_in(self, process: Process, checkpoint: Checkpoint, conditions: Conditions) -> EngineRun:
        """The same in a child that runs already, on the card that it was started for."""
        try:
            job = self.job(checkpoint, conditions)
        except Refused as refused:
            return EngineRun(self.name, version=process.version, refusal=Refusal("config", refused.reason))
        except NotModelled as unknown:
            return EngineRun(self.name, version=process.version, skipped=unknown.reason)
        with as_folder(checkpoint) as folder:
            record = process.ask({"folder": folder, **job})
        return read_record(record, self.name, process.version, checkpoint, conditions, self.reading)

    def forward(self, run: EngineRun) -> "Forward":
        """What the draft of `run` computes; see `Engine`."""
        return self.forward_of(run)
