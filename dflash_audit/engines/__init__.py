"""The engines of the audit; each is imported when it is asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from dflash_audit.engine_run import Conditions, EngineRun
    from dflash_audit.forward import Forward
    from dflash_audit.sources.checkpoint import Checkpoint


class Engine(Protocol):
    """A serving engine at a version."""

    @property
    def name(self) -> str: ...

    def replay(self, checkpoint: "Checkpoint", conditions: "Conditions") -> "EngineRun":
        """What the engine does with a checkpoint; never raises for what the checkpoint holds."""
        ...

    def forward(self, run: "EngineRun") -> "Forward":
        """What a draft that was built and loaded computes, for a warm-up.

        Raises `Refused` where the engine does, `NotModelled` for what the audit does not replay.
        """
        ...


ENGINES: Final[Mapping[str, str]] = {
    "sglang-0.5.19": "sglang.replay:OLDER",
    "sglang-0.5.23": "sglang.replay:RELEASE",
    "sglang-next": "sglang.replay:FOLLOWING",
    "vllm-0.33.0": "vllm.replay:RELEASE",
}
"""Name -> where the engine is, as module:attribute of this package. Every audit replays all of them."""

SUPERSEDED: Final = frozenset({"sglang-0.5.19"})
"""Releases that a later one of `ENGINES` has followed: what only they fail at is told in their own entry,
and where they do not gate nothing is mended for them."""

LIVE: Final[Mapping[str, str]] = {
    "sglang@installed": "sglang_installed.engine:INSTALLED",
    "vllm@installed": "vllm_installed.engine:INSTALLED",
}
"""Engines that run themselves, in place of a profile: asked only by name, for each costs a process.
What a rule tries on edited checkpoints it tries on profiles."""

DEFAULT: Final = "sglang-next"
"""The engine that gates where none is asked for."""


def engine(name: str) -> Engine:
    """The engine of that name."""
    module, _, attribute = (ENGINES.get(name) or LIVE[name]).partition(":")
    found: Engine = getattr(import_module(f"{__name__}.{module}"), attribute)
    return found
