"""What a user's SOURCE is: a path, or a draft on the Hub."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dflash_audit.errors import Unreadable
from dflash_audit.sources.checkpoint import Checkpoint, Origin
from dflash_audit.sources.disk import open_path, read_path
from dflash_audit.sources.reading import Folder
from dflash_audit.sources.repo import SCHEME, Repo, parse_repo
from dflash_audit.sources.weight_files import WEIGHTS

UNSEEN: Final = frozenset(("no-such-repo", "no-access", "network"))
"""Kinds of `Unreadable` after which it stays open whether a repo was meant at all."""


def find_repo(source: str) -> Repo | None:
    """The repo that is meant; None for a path.

    A path that exists wins over a repo of the same name; `hf://` forces a repo, `./`
    a path. What is neither counts as a path, for its reader to complain about.
    """
    repo = parse_repo(source)
    if source.startswith(SCHEME):
        return repo
    return None if os.path.exists(source) or source.endswith(WEIGHTS) else repo


def origin(source: str, revision: str | None) -> Origin:
    """Where `source` points, before anything of it was read."""
    repo = find_repo(source)
    return Origin("local", source) if repo is None else Origin("hub", repo.name, repo.revision or revision)


def read_source(source: str, revision: str | None) -> Checkpoint:
    """Read what `source` names, of a repo the given revision.

    Raises `Unreadable`: no-such-source, no-such-revision, and what the readers
    of folders and of repos do.
    """
    repo = find_repo(source)
    if repo is None:
        return _read_path(source, revision)
    if revision is not None and repo.revision not in (None, revision):
        raise Unreadable("no-such-revision", source, f"another revision than --revision {revision}")
    # Only here, because it takes a moment to import: an audit of a folder does without.
    from dflash_audit.sources.hub import read_repo

    with _perhaps_a_path(source, repo):
        return read_repo(repo._replace(revision=repo.revision or revision))


def open_folder(source: str) -> Folder:
    """The folder or the repo that `source` names, to read files of.

    Raises `Unreadable`: no-such-source, and what the readers of folders and of repos do.
    """
    repo = find_repo(source)
    if repo is None:
        _refuse_no_path(source)
        return open_path(source)
    # Only here, as in `read_source`.
    from dflash_audit.sources.hub import open_repo

    with _perhaps_a_path(source, repo):
        return open_repo(repo)


@contextmanager
def _perhaps_a_path(source: str, repo: Repo) -> Iterator[None]:
    """Say of a repo that was not seen that there is no such path either."""
    try:
        yield
    except Unreadable as error:
        if error.kind not in UNSEEN or not error.subject == source == repo.id:
            raise
        raise Unreadable(error.kind, source, _nor_a_path(source, error.reason)) from None


def _nor_a_path(source: str, reason: str) -> str:
    """Why a repo was not seen, for one who may have meant `source`, `folder/name`, as a path."""
    folder, name = source.split("/")
    if os.path.isdir(folder):
        return f"the folder {folder} is here and holds no {name}; as a repo: {reason}"
    return f"{reason}; nor is there such a path here"


def _read_path(source: str, revision: str | None) -> Checkpoint:
    _refuse_no_path(source)
    if revision is not None and os.path.exists(source):
        raise Unreadable("no-such-revision", source, "a path, and --revision is for a repo of the Hub")
    return read_path(source)


def _refuse_no_path(source: str) -> None:
    if not source:
        raise Unreadable("no-such-source", "SOURCE", "empty")
    if source.startswith(SCHEME):
        told = f"not {SCHEME}org/name, with or without @revision and :folder/"
        raise Unreadable("no-such-source", source, told)
