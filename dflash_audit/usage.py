"""What is wrong with what was asked, told before anything is read: exit code 2, or a ValueError."""

import difflib
from collections.abc import Iterable

from dflash_audit.engines import ENGINES, LIVE
from dflash_audit.printable import printable


class WrongUsage(ValueError):
    """A name that does not exist, or options that do not go together. Its text is one line for people."""

    def __init__(self, text: str) -> None:
        super().__init__(printable(text))


def known(name: str, names: Iterable[str], what: str) -> str:
    """A name as given; raises WrongUsage with the nearest one for a name that is none."""
    names = [*names]
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    meant = f" Did you mean {near[0]}?" if near else ""
    raise WrongUsage(f"{name} is no {what}.{meant} Known: {', '.join(names)}.")


def given(text: str) -> str:
    """A text as given; raises WrongUsage for an empty one, such as of a variable that is not set."""
    if not text.strip():
        raise WrongUsage("it is empty: leave it out instead")
    return text


def deciding(names: Iterable[str]) -> frozenset[str]:
    """The engines that are named, with "all" for every profile."""
    asked = {*names}
    return frozenset(asked - {"all"} | ({*ENGINES} if "all" in asked else set()))


def installed_version(engine: str = "sglang@installed") -> str:
    """The version of a live engine that is installed; raises WrongUsage without one."""
    # Only here: most audits ask for a profile.
    from dflash_audit.engines.sglang_installed.installed import HOW_TO_INSTALL, installed_version

    version = installed_version()
    if version is None:
        raise WrongUsage(f"{engine} needs an SGLang, and there is none: {HOW_TO_INSTALL}.")
    return version


def one_rank(engines: Iterable[str], tp: int, warmup: bool = False) -> None:
    """Raises WrongUsage where a live engine or a warm-up is to build one rank of several."""
    if tp > 1 and warmup:
        raise WrongUsage("--warmup runs a draft of one rank: no --tp")
    live = [name for name in engines if name in LIVE]
    if tp > 1 and live:
        raise WrongUsage(f"{', '.join(live)} builds one rank alone: no --tp")
