"""The name of a draft on the Hub, as a user writes it."""

import re
from typing import Final, NamedTuple

SCHEME: Final = "hf://"

_WORD: Final = r"\w(?:[\w.-]*\w)?"
_REPO: Final = re.compile(
    rf"(?P<id>{_WORD}/{_WORD})(?:@(?P<revision>[^@:\s]+))?(?::(?P<folder>[^:]+))?", flags=re.ASCII
)


class Repo(NamedTuple):
    """A repo of the Hub, or a `folder` in it (no slash at its ends, empty for the top).

    `revision` is None for the default branch.
    """

    id: str
    revision: str | None = None
    folder: str = ""

    @property
    def name(self) -> str:
        """As a user would write it, without the revision."""
        return f"{self.id}:{self.folder}" if self.folder else self.id


def parse_repo(text: str) -> Repo | None:
    """`org/name`, `org/name@revision`, `org/name:folder/` or all of it, with or without `hf://`; else None.

    A revision may hold slashes (`refs/pr/1`), but neither `@` nor `:`; git allows no `:` in one.
    """
    match = _REPO.fullmatch(text.removeprefix(SCHEME))
    if match is None:
        return None
    folder = (match["folder"] or "").strip("/")
    if any(part in ("", ".", "..") for part in folder.split("/")) and match["folder"]:
        return None
    return Repo(match["id"], match["revision"], folder)
