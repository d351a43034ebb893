"""Goes through the drafts with a profile and with the installed engine."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from dflash_audit.engines import ENGINES, engine
from dflash_audit.engines.sglang_installed.engine import replay_in
from dflash_audit.engines.sglang_installed.process import Process
from dflash_audit.errors import Unreadable
from dflash_audit.selfcheck.cases import Case
from dflash_audit.selfcheck.differences import differences

PREFIX: Final = "sglang-"


@dataclass(frozen=True, slots=True)
class Compared:
    """One draft: how the two differ, or why they were not compared."""

    case: Case
    differences: tuple[str, ...] = ()
    not_compared: str | None = None


def nearest_profile(version: str) -> str:
    """The profile of a version, or of the latest release before it, or of the first there is.

    Of a version without a number the latest there is.
    """
    releases = sorted((_numbers(name), name) for name in ENGINES if _numbers(name))
    if not _numbers(PREFIX + version):
        return releases[-1][1]
    before = [name for numbers, name in releases if numbers <= _numbers(PREFIX + version)]
    return before[-1] if before else releases[0][1]


def _numbers(name: str) -> tuple[int, ...]:
    """`sglang-0.5.23` -> (0, 5, 23); nothing for a name without a version."""
    numbers = []
    for part in name.removeprefix(PREFIX).split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)


def check(cases: Iterable[Case], profile: str, capability: int) -> Iterator[Compared]:
    """Compare, case by case. A case that ends the engine's process differs, and another process goes on.

    Raises `Unreadable` where no process starts.
    """
    process = Process(capability)
    try:
        for case in cases:
            compared = _compare(case, profile, capability, process)
            if compared is None:
                process.close()
                process = Process(capability)
                compared = Compared(case, ("the engine's process ended",))
            yield compared
    finally:
        process.close()


def _compare(case: Case, profile: str, capability: int, process: Process) -> Compared | None:
    """None where the engine's process failed."""
    conditions = case.conditions(capability)
    if conditions.tp != 1:
        return Compared(case, not_compared="several ranks")
    try:
        with case.checkpoint() as checkpoint:
            told = engine(profile).replay(checkpoint, conditions)
            if told.skipped is not None:
                return Compared(case, not_compared=told.skipped)
            live = replay_in(process, checkpoint, conditions)
    except Unreadable as error:
        return None if error.kind == "engine-failed" else Compared(case, not_compared=error.message)
    if live.skipped is not None:
        return Compared(case, (f"the engine: {live.skipped}",))
    return Compared(case, tuple(differences(told, live)))
