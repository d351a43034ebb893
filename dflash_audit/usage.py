"""What is wrong with what was asked, told before anything is read: exit code 2, or a ValueError."""

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dflash_audit.engines import ENGINES, LIVE
from dflash_audit.printable import printable
from dflash_audit.server_words import DRAFT_ATTENTION_BACKENDS, QUANTIZATIONS

if TYPE_CHECKING:
    from dflash_audit.engines.installed.packages import Package


class WrongUsage(ValueError):
    """A name that does not exist, or options that do not go together. Its text is one line for people."""

    def __init__(self, text: str) -> None:
        super().__init__(printable(text))


def known(name: str, names: Iterable[str], what: str) -> str:
    """A name as given; raises WrongUsage with the nearest one for a name that is none."""
    if not name.strip():
        raise WrongUsage(f"an empty name is no {what}: leave it out instead")
    names = [*names]
    if name in names:
        return name
    begin = [each for each in names if each.startswith(name)]
    near = begin or difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    meant = f" Did you mean {near[0]}?" if near else ""
    raise WrongUsage(f"{name} is no {what}.{meant} Known: {', '.join(names)}.")


def quantization(name: str) -> str:
    """An SGLang server's --quantization as given; raises WrongUsage for one that none takes."""
    return known(name, QUANTIZATIONS, "quantization method of an SGLang server")


def attention_backend(name: str) -> str:
    """An SGLang server's draft attention backend as given; raises WrongUsage for one that none takes."""
    return known(name, DRAFT_ATTENTION_BACKENDS, "draft attention backend of an SGLang server")


def given(text: str) -> str:
    """A text as given; raises WrongUsage for an empty one, such as of a variable that is not set."""
    if not text.strip():
        raise WrongUsage("it is empty: leave it out instead")
    return text


def deciding(names: Iterable[str]) -> frozenset[str]:
    """The engines that are named, with "all" for every profile."""
    asked = {*names}
    return frozenset(asked - {"all"} | ({*ENGINES} if "all" in asked else set()))


def installed_version(engine: str) -> str:
    """The version of a live engine that is installed; raises WrongUsage without one."""
    # Only here: most audits ask for a profile.
    from dflash_audit.engines.installed.packages import PACKAGES

    package = PACKAGES[engine]
    version = package.installed_version()
    if version is None:
        needed = f"{engine} needs an installed {package.title}, and there is none"
        raise WrongUsage(f"{needed}: {package.how_to_install}.")
    return version


def installed_packages(profile: str | None) -> list["Package"]:
    """The installed package that a profile is of, each that is installed where none is named.

    Raises WrongUsage where there is none.
    """
    # Only here, as above.
    from dflash_audit.engines.installed.packages import PACKAGES

    packages = [*PACKAGES.values()]
    if profile is not None:
        packages = [package for package in packages if profile.startswith(package.profiles)]
        for package in packages:
            installed_version(package.engine)
        return packages
    found = [package for package in packages if package.installed_version() is not None]
    if not found:
        how = ", or ".join(package.how_to_install for package in packages)
        raise WrongUsage(f"there is no engine here to compare with: {how}.")
    return found


def one_rank(engines: Iterable[str], tp: int, warmup: bool = False) -> None:
    """Raises WrongUsage where a live engine or a warm-up is to build one rank of several."""
    if tp > 1 and warmup:
        raise WrongUsage("--warmup runs a draft of one rank: no --tp")
    live = [name for name in engines if name in LIVE]
    if tp > 1 and live:
        raise WrongUsage(f"{', '.join(live)} builds one rank alone: no --tp")
