"""Where a folder is to go."""

from dataclasses import dataclass
from typing import Final

MESSAGE: Final = "Upload a draft with dflash-audit"


@dataclass(frozen=True, slots=True)
class Destination:
    """A repo of the Hub, `org/name`; `revision` is a branch or a pull request's ref, None for the default.

    With `create_pr` the commit becomes a pull request; with `private` a repo that is
    not there yet becomes a private one. `message` is the commit's first line.
    """

    repo: str
    revision: str | None = None
    create_pr: bool = False
    private: bool = False
    message: str = MESSAGE

    @property
    def name(self) -> str:
        """As a user writes it."""
        return f"{self.repo}@{self.revision}" if self.revision else self.repo
