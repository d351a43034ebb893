"""A pull request held against the branch that it is to be merged into."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dflash_audit.auditing import Request, audit, target_read
from dflash_audit.errors import Unreadable
from dflash_audit.publishing.before_after import Comparison, compare
from dflash_audit.report import UNREADABLE, Report
from dflash_audit.sources.repo import SCHEME, Repo

if TYPE_CHECKING:
    from dflash_audit.publishing.pull_request import Posted, PullRequest

NOT_SEEN: Final = frozenset(
    ("no-such-repo", "gated-repo", "no-access", "network", "bad-answer", "not-cached")
)
"""Kinds of `Unreadable` that say nothing of the checkpoint; any other does."""


@dataclass(frozen=True, slots=True)
class Review:
    """What becomes of a draft with a pull request.

    `pull_request` is None where it could not be asked for, and then neither side was audited.
    `before` is the audit of the base, `after` that of the pull request, on which alone the
    exit code depends. An `error` is what kept a side from being looked at, and then there is no
    `comparison`, or the comment from being posted; a side that holds no checkpoint that can be
    read has an error of its own.
    """

    repo: Repo
    number: int
    pull_request: "PullRequest | None" = None
    before: Report | None = None
    after: Report | None = None
    comparison: Comparison | None = None
    posted: "Posted | None" = None
    error: Unreadable | None = None

    @property
    def exit_code(self) -> int:
        """The pull request's, by the gate; 3 for an error."""
        return UNREADABLE if self.error or self.after is None else self.after.exit_code


def review(repo: Repo, number: int, request: Request, gate: Callable[[Report], Report]) -> Review:
    """Audit a pull request and its base as `request` says, each through `gate`.

    A base without a checkpoint that can be read, as a new repo's, makes all of it new.
    """
    # Only here, because it takes a moment to import.
    from dflash_audit.publishing.pull_request import find

    try:
        pull_request = find(repo, number)
    except Unreadable as error:
        return Review(repo, number, error=error)
    source = f"{SCHEME}{repo.name}"  # a repo, whatever is here under that name
    try:
        # Read once, for both sides: what is wrong with it is the fault of neither.
        request = target_read(request)
    except Unreadable as error:
        return Review(repo, number, pull_request, error=error)
    before = gate(audit(request._replace(source=source, revision=pull_request.base)))
    after = gate(audit(request._replace(source=source, revision=pull_request.ref)))
    unseen = [side.error for side in (after, before) if side.error and side.error.kind in NOT_SEEN]
    if unseen:
        return Review(repo, number, pull_request, before, after, error=unseen[0])
    return Review(repo, number, pull_request, before, after, compare(before, after))


def with_comment(done: Review, text: str) -> Review:
    """Post `text` on the pull request, or update what was posted; what was not seen is not told."""
    if done.pull_request is None or done.error is not None:
        return done
    from dflash_audit.publishing.pull_request import comment

    try:
        return replace(done, posted=comment(done.pull_request, text))
    except Unreadable as error:
        return replace(done, error=error)
