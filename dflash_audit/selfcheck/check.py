"""Goes through the drafts with a profile and with the installed engine."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dflash_audit.engines import ENGINES, engine
from dflash_audit.engines.installed.engine import Installed
from dflash_audit.engines.installed.packages import Package
from dflash_audit.engines.installed.process import Process
from dflash_audit.errors import Unreadable
from dflash_audit.selfcheck.cases import Case
from dflash_audit.selfcheck.differences import differences


@dataclass(frozen=True, slots=True)
class Compared:
    """One draft: how the two differ, or why they were not compared."""

    case: Case
    differences: tuple[str, ...] = ()
    not_compared: str | None = None


def nearest_profile(package: Package, version: str) -> str:
    """The profile of a version of a package, or of the latest release before it, or of the first there is.

    Of a version without a number the latest there is.
    """
    own = [name for name in ENGINES if name.startswith(package.profiles)]
    releases = sorted((numbers, name) for name in own if (numbers := _numbers(package, name)))
    wanted = _numbers(package, package.profiles + version)
    if not wanted:
        return releases[-1][1]
    before = [name for numbers, name in releases if numbers <= wanted]
    return before[-1] if before else releases[0][1]


def _numbers(package: Package, name: str) -> tuple[int, ...]:
    """`sglang-0.5.23` -> (0, 5, 23); nothing for a name without a version."""
    numbers = []
    for part in name.removeprefix(package.profiles).split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)


def check(cases: Iterable[Case], package: Package, profile: str, capability: int) -> Iterator[Compared]:
    """Compare, case by case. A case that ends the engine's process differs, and another process goes on.

    Raises `Unreadable` where no process starts.
    """
    process = Process(package, capability)
    try:
        for case in cases:
            compared = _compare(case, profile, capability, process)
            if compared is None:
                process.close()
                process = Process(package, capability)
                compared = Compared(case, ("the engine's process ended",))
            yield compared
    finally:
        process.close()


def _compare(case: Case, profile: str, capability: int, process: Process) -> Compared | None:
    """None where the engine's process failed."""
    conditions = case.conditions(capability)
    installed = engine(process.package.engine)
    assert isinstance(installed, Installed)
    if conditions.tp != 1:
        return Compared(case, not_compared="several ranks")
    try:
        with case.checkpoint() as checkpoint:
            told = engine(profile).replay(checkpoint, conditions)
            if told.skipped is not None:
                return Compared(case, not_compared=told.skipped)
            live = installed.replay_in(process, checkpoint, conditions)
    except Unreadable as error:
        return None if error.kind == "engine-failed" else Compared(case, not_compared=error.message)
    if live.skipped is not None:
        return Compared(case, (f"the engine: {live.skipped}",))
    return Compared(case, tuple(differences(told, live)))
