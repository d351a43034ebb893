"""The engines that the audit replays."""

from collections.abc import Mapping
from typing import Final, Protocol

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.sglang.profile import NEXT, RELEASE_0_5_23
from dflash_audit.engines.sglang.replay import SGLang
from dflash_audit.sources.checkpoint import Checkpoint


class Engine(Protocol):
    """A serving engine at a version."""

    @property
    def name(self) -> str: ...

    def replay(self, checkpoint: Checkpoint, conditions: Conditions) -> EngineRun:
        """What the engine does with a checkpoint; never raises for what the checkpoint holds."""
        ...


ENGINES: Final[Mapping[str, Engine]] = {
    "sglang-0.5.23": SGLang(RELEASE_0_5_23),
    "sglang-next": SGLang(NEXT),
}

DEFAULT: Final = "sglang-next"
"""The engine that gates where none is asked for."""
