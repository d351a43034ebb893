"""The files of a checkpoint in a repo of the Hub, downloaded into the cache of huggingface_hub.

That cache takes in a file only once it is whole, and keeps what an interrupted
download had finished: the next one goes on with the rest.
"""

import errno
import sys
from pathlib import Path
from typing import Final

from huggingface_hub import constants, hf_hub_download, is_offline_mode, try_to_load_from_cache
from huggingface_hub.errors import LocalEntryNotFoundError

from dflash_audit import __version__
from dflash_audit.byte_count import byte_count
from dflash_audit.errors import Unreadable
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.sources.hub import PROGRAM, explained
from dflash_audit.sources.progress import SHOWN
from dflash_audit.sources.repo import Repo, parse_repo

FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
UNWRITABLE: Final = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR))


def download(checkpoint: Checkpoint) -> Path:
    """The folder in the cache with the weight files, and the JSON files that were read, at their commit.

    What there is to download is told on stderr first, on the command line. Raises `Unreadable`:
    disk-full, unwritable, not-cached, bad-answer, and what `read_repo` does.
    """
    repo, commit = parse_repo(checkpoint.origin.id), checkpoint.origin.commit
    assert repo is not None and commit is not None
    sizes = {file.name: file.size for file in checkpoint.files}
    missing = [size for name, size in sizes.items() if not _is_cached(repo, commit, name)]
    if missing and SHOWN.get() and not is_offline_mode():
        files = f"{len(missing)} weight file{'' if len(missing) == 1 else 's'}"
        told = f"downloading {files} of {repo.name} at {commit[:12]}, {byte_count(sum(missing))}"
        print(f"dflash-audit: {told}, into {constants.HF_HUB_CACHE}", file=sys.stderr)
    paths = {name: _fetch(repo, commit, name) for name in (*checkpoint.json_files.read, *sizes)}
    for name, size in sizes.items():
        if (there := paths[name].stat().st_size) != size:
            told = f"{there} bytes in the cache where the repo has {size}: remove {paths[name]}"
            raise Unreadable("bad-answer", f"{repo.name}/{name}", told)
    return next(iter(paths.values())).parent


def _is_cached(repo: Repo, commit: str, name: str) -> bool:
    return isinstance(try_to_load_from_cache(repo.id, _path(repo, name), revision=commit), str)


def _fetch(repo: Repo, commit: str, name: str) -> Path:
    subject = f"{repo.name}/{name}"
    with explained(subject):
        return _request(repo, commit, name, subject)  # the client itself tries several times


def _request(repo: Repo, commit: str, name: str, subject: str) -> Path:
    try:
        path = hf_hub_download(
            repo.id, _path(repo, name), revision=commit, library_name=PROGRAM, library_version=__version__
        )
    except LocalEntryNotFoundError as error:
        if is_offline_mode():
            raise Unreadable("not-cached", subject, "not in the cache, and HF_HUB_OFFLINE is set") from None
        raise error.__cause__ or error from None  # what kept the client from asking the Hub
    except OSError as error:
        if error.errno in FULL | UNWRITABLE:
            raise _not_written(subject, error.errno in FULL, error.strerror or "") from None
        raise
    except RuntimeError as error:  # how hf_xet, which is no Python, says whatever it meets
        if any(f"os error {number}" in str(error) for number in FULL):
            raise _not_written(subject, True, str(error)) from None
        raise Unreadable("network", subject, f"{constants.ENDPOINT} cannot be read ({error})") from None
    return Path(path)


def _not_written(subject: str, full: bool, reason: str) -> Unreadable:
    kind = "disk-full" if full else "unwritable"
    return Unreadable(kind, subject, f"cannot be written to {constants.HF_HUB_CACHE} ({reason})")


def _path(repo: Repo, name: str) -> str:
    return f"{repo.folder}/{name}" if repo.folder else name
