"""A folder as one commit to a repo of the Hub, through huggingface_hub."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from huggingface_hub import (
    CommitInfo,
    CommitOperationAdd,
    HfApi,
    ModelInfo,
    get_token,
    is_offline_mode,
    logging,
)
from huggingface_hub.errors import OfflineModeIsEnabled, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.utils import (  # type: ignore[attr-defined] # exported, though not explicitly
    disable_progress_bars,
)

from dflash_audit import __version__
from dflash_audit.errors import Unreadable
from dflash_audit.publishing.contents import Contents, Entry, changes, contents
from dflash_audit.publishing.destination import Destination
from dflash_audit.publishing.failures import NO_TOKEN, explained, leaves_open
from dflash_audit.sources.hub import PROGRAM

HELD: Final = 10 * 2**20
"""Files of fewer bytes are read into memory at once: only those does the Hub take within a commit."""

IN_DOUBT: Final = "the commit may have been made: look there before you push again"
"""Of one that was asked for and not answered."""

TIMEOUT: Final = 30.0
"""Seconds for the Hub to say what a repo holds."""


@dataclass(frozen=True, slots=True)
class State:
    """A repo as it is found: its paths at the revision, at which `commit`.

    `private` is None where there is no such repo, `commit` where it has no such revision:
    then `paths` are those of its default branch, at which a new one would start, from `start`.
    """

    private: bool | None
    commit: str | None
    paths: tuple[str, ...] = ()
    start: str | None = None


def look(destination: Destination) -> State:
    """What the Hub has there; nothing is written. Raises `Unreadable`."""
    api = _api()
    with explained(destination.name):
        if is_offline_mode():
            raise OfflineModeIsEnabled
        try:
            info = api.model_info(destination.repo, revision=destination.revision, timeout=TIMEOUT)
        except RevisionNotFoundError:
            info = api.model_info(destination.repo, timeout=TIMEOUT)
            return State(bool(info.private), None, _paths(info), info.sha)
        except RepositoryNotFoundError:
            return State(None, None)
        return State(bool(info.private), info.sha, _paths(info))


def _paths(info: ModelInfo) -> tuple[str, ...]:
    return tuple(file.rfilename for file in info.siblings or ())


def upload(
    before: Contents,
    files: Sequence[Entry],
    destination: Destination,
    state: State,
    tell: Callable[[str], None],
) -> CommitInfo:
    """Commit `files`, as they were when `before` was taken, onto the state that was looked at.

    What is missing there, the repo or the branch, is made first. Raises `Unreadable`: no-token,
    changed, left-out, unreadable-file, and what `explained` does. Then nothing was committed,
    unless the reason says that it may have been; so does a KeyboardInterrupt's text.
    """
    with _quiet(tell):
        with explained(destination.name):
            token = get_token()
        if token is None:
            raise Unreadable("no-token", destination.name, NO_TOKEN)
        _unchanged(before)
        operations = _operations(before, files)
        with explained(destination.name):
            commit = state.commit or _make(destination, state)
        _send(before, operations, destination)
        return _commit(operations, destination, commit)


def _api() -> HfApi:
    return HfApi(library_name=PROGRAM, library_version=__version__)


def _make(destination: Destination, state: State) -> str | None:
    """Make the repo and the branch that are missing; the commit that they are at."""
    api = _api()
    if state.private is None:
        api.create_repo(destination.repo, private=True if destination.private else None)
    if destination.revision is not None and look(destination).commit is None:
        api.create_branch(destination.repo, branch=destination.revision, revision=state.start)
    return look(destination).commit


def _operations(before: Contents, files: Sequence[Entry]) -> list[CommitOperationAdd]:
    """Small files as the bytes that they hold now, others by their path, to be hashed as they are read."""
    held = []
    for entry in files:
        path = Path(before.folder, entry.path)
        try:
            content = path.read_bytes() if entry.size < HELD else str(path)
            held.append(CommitOperationAdd(path_in_repo=entry.path, path_or_fileobj=content))
        except (OSError, ValueError) as error:
            _unchanged(before)
            raise Unreadable("unreadable-file", str(path), f"cannot be read: {error}") from None
    return held


def _send(before: Contents, operations: Sequence[CommitOperationAdd], destination: Destination) -> None:
    """Upload the large files. After it the commit alone is left, and what it holds is what was audited."""
    try:
        with explained(destination.name):
            _api().preupload_lfs_files(
                destination.repo,
                operations,
                revision=destination.revision,
                create_pr=destination.create_pr,
            )
    except Exception:
        _unchanged(before)
        raise
    _unchanged(before)
    # A .gitignore of the repo counts on the Hub, and would leave these out without a word.
    ignored = [each.path_in_repo for each in operations if getattr(each, "_should_ignore", False)]
    if ignored:
        told = f"its .gitignore leaves out {', '.join(ignored)}: nothing was committed"
        raise Unreadable("left-out", destination.name, told)


def _commit(
    operations: Sequence[CommitOperationAdd], destination: Destination, parent: str | None
) -> CommitInfo:
    try:
        with explained(destination.name):
            return _api().create_commit(
                destination.repo,
                operations,
                commit_message=destination.message,
                revision=destination.revision,
                create_pr=destination.create_pr,
                parent_commit=parent,
            )
    except Unreadable as error:
        if not leaves_open(error):
            raise
        raise Unreadable(error.kind, destination.name, f"{error.reason}; {IN_DOUBT}") from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{destination.name}: {IN_DOUBT}") from None


def _unchanged(before: Contents) -> None:
    changed = changes(before, contents(before.folder))
    if changed:
        told = f"changed since it was audited, and nothing was committed: {', '.join(changed)}"
        raise Unreadable("changed", before.folder, told)


@contextmanager
def _quiet(tell: Callable[[str], None]) -> Iterator[None]:
    """The client's warnings a line each; its bars on a terminal alone."""
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    if not sys.stderr.isatty():
        disable_progress_bars()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for message in dict.fromkeys(" ".join(str(each.message).split()) for each in caught):
                tell(message)
