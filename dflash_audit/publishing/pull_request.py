"""A pull request of the Hub, and the one comment of an audit on it, through huggingface_hub."""

import hashlib
from dataclasses import dataclass
from typing import Final, Literal

from huggingface_hub import DiscussionComment, HfApi

from dflash_audit import __version__
from dflash_audit.errors import Unreadable
from dflash_audit.publishing.failures import explained
from dflash_audit.sources.hub import PROGRAM
from dflash_audit.sources.repo import Repo

BRANCHES: Final = "refs/heads/"

Action = Literal["posted", "updated", "unchanged"]


@dataclass(frozen=True, slots=True)
class PullRequest:
    """The pull request `number` of a repo, or of a folder in it, into the branch `base`.

    `status` is open, draft, closed or merged. `comments` are those on it, oldest first.
    """

    repo: Repo
    number: int
    base: str
    status: str
    url: str
    comments: tuple[DiscussionComment, ...] = ()

    @property
    def ref(self) -> str:
        """The revision at which its files are."""
        return f"refs/pr/{self.number}"

    @property
    def name(self) -> str:
        """As messages call it."""
        return f"{self.repo.name} pull request {self.number}"

    @property
    def marker(self) -> str:
        """What begins the audit's comment, and nobody sees: a folder's is another than the repo's."""
        folder = hashlib.sha256(self.repo.folder.encode()).hexdigest()[:12] if self.repo.folder else "top"
        return f"<!-- {PROGRAM} pr {folder} -->"


@dataclass(frozen=True, slots=True)
class Posted:
    """What became of a comment, and where it is."""

    action: Action
    id: str
    url: str


def find(repo: Repo, number: int) -> PullRequest:
    """Ask the Hub for a pull request; nothing is written. Raises `Unreadable`: no-such-source, and others."""
    subject = f"{repo.name} pull request {number}"
    with explained(subject):
        found = _api().get_discussion_details(repo.id, number)
    if not found.is_pull_request:
        raise Unreadable("no-such-source", subject, "a discussion, and no pull request")
    comments = tuple(event for event in found.events if isinstance(event, DiscussionComment))
    base = str(found.target_branch).removeprefix(BRANCHES)
    return PullRequest(repo, number, base, found.status, found.url, comments)


def comment(pull_request: PullRequest, text: str) -> Posted:
    """Post `text`, which begins with the marker, or put it into the place of what was posted before.

    Only a comment of the token's own user is taken for that one, whatever another begins
    with. Raises `Unreadable`: no-token, no-access, and others.
    """
    api, repo, number = _api(), pull_request.repo.id, pull_request.number
    with explained(pull_request.name):
        user = api.whoami()["name"]
        for old in reversed(pull_request.comments):
            if old.author == user and not old.hidden and old.content.startswith(pull_request.marker):
                if old.content.strip() == text.strip():
                    return _posted(pull_request, "unchanged", old.id)
                api.edit_discussion_comment(repo, number, old.id, text)
                return _posted(pull_request, "updated", old.id)
        return _posted(pull_request, "posted", api.comment_discussion(repo, number, text).id)


def _posted(pull_request: PullRequest, action: Action, comment_id: str) -> Posted:
    return Posted(action, comment_id, f"{pull_request.url}#{comment_id}")


def _api() -> HfApi:
    return HfApi(library_name=PROGRAM, library_version=__version__)
