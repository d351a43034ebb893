"""Which repos of a listing look like drafts: by their class, by their name, by a folder's name."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dflash_audit.engines.sglang.draft import CLASSES
from dflash_audit.sources.checkpoint import CONFIG
from dflash_audit.sources.hub_listing import Listed
from dflash_audit.sources.repo import Repo, parse_repo
from dflash_audit.sources.weight_files import WEIGHTS
from dflash_audit.sweeping.names import written

FAMILY: Final = re.compile(r"(?i)d-?flash|d-?spark|lilicorr")
"""Words by which drafts of the family go, in names of repos, of folders and of classes."""

NO_DRAFT: Final = "neither class nor name is a draft's"
NO_WEIGHTS: Final = f"no {CONFIG} with {WEIGHTS} files beside it"
ODD_NAME: Final = "no name of a repo"


@dataclass(frozen=True, slots=True)
class Selection:
    """The sources that a sweep of a listing audits, and reason -> how many repos were left out for it."""

    sources: tuple[str, ...]
    left_out: dict[str, int]

    @property
    def listed(self) -> int:
        return len(self.sources) + sum(self.left_out.values())


def select(listing: Iterable[Listed]) -> Selection:
    """What looks like a draft. A repo with several counts as several."""
    sources: list[str] = []
    left_out: Counter[str] = Counter()
    for listed in listing:
        found = _drafts(listed)
        if isinstance(found, str):
            left_out[found] += 1
        else:
            sources += found
    return Selection(tuple(sources), dict(left_out))


def _drafts(listed: Listed) -> list[str] | str:
    """The drafts in a repo as sources, or why there is none."""
    if parse_repo(listed.id) != Repo(listed.id):
        return ODD_NAME
    weights = {posixpath.dirname(path) for path in listed.files if path.endswith(WEIGHTS)}
    folders = [
        posixpath.dirname(path)
        for path in listed.files
        if posixpath.basename(path) == CONFIG and posixpath.dirname(path) in weights
    ]
    if not folders:
        return NO_WEIGHTS
    named = [Repo(listed.id, None, folder) for folder in folders if FAMILY.search(folder)]
    if "" in folders and (FAMILY.search(listed.id) or any(map(_of_family, listed.architectures))):
        named.insert(0, Repo(listed.id))
    # What cannot be written as a source is no folder that a draft is served from.
    sources = [written(repo) for repo in named if parse_repo(written(repo)) == repo]
    return sources or NO_DRAFT


def _of_family(architecture: str) -> bool:
    return architecture in CLASSES or FAMILY.search(architecture) is not None
