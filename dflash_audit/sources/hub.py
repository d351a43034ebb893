"""A checkpoint in a repo of the Hub, by its JSON files and the headers of its weight files alone.

With `hub_download`, `hub_listing` and `publishing` the only importer of huggingface_hub, of which all
take what 1.31 to 2.x have.
Nothing is written to its cache. A repo is listed once, and all that is read
after that is read at the commit of the listing, so a push in between changes nothing.
"""

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from huggingface_hub import (
    HfApi,
    constants,
    get_cached_repo_tree,
    get_session,
    hf_hub_url,
    is_offline_mode,
    snapshot_download,
)
from huggingface_hub.errors import (
    CachedRepoTreeNotFoundError,
    DisabledRepoError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    IncompleteSnapshotError,
    LocalEntryNotFoundError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import (  # type: ignore[attr-defined] # exported, though not explicitly
    build_hf_headers,
    hf_raise_for_status,
    parse_ratelimit_headers,
    validate_repo_id,
)

from dflash_audit import __version__
from dflash_audit.errors import Unreadable
from dflash_audit.sources.checkpoint import MAX_JSON, Checkpoint, Origin
from dflash_audit.sources.disk import DiskFolder
from dflash_audit.sources.reading import JSON, Folder, read_folder
from dflash_audit.sources.remarks import Remark
from dflash_audit.sources.repo import Repo
from dflash_audit.sources.safetensors_header import PREFIX, header_length, parse_header
from dflash_audit.sources.traffic import TRAFFIC, TooLong
from dflash_audit.sources.weight_files import WEIGHTS, WeightFile

PROGRAM: Final = "dflash-audit"

FIRST_READ: Final = 64 * 2**10
"""Bytes asked of a weight file at first: the header of some 570 tensors."""

AT_ONCE: Final = 8
"""Most requests under way."""

WAITS: Final = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each further attempt, where the server names none."""

PASSING: Final = frozenset((408, 429, 500, 502, 503, 504))
"""HTTP statuses after which another attempt may succeed."""

FOR_GOOD: Final = frozenset(
    ("ConnectError", "ConnectTimeout", "InvalidURL", "ProxyError", "TooManyRedirects", "UnsupportedProtocol")
)
"""Classes of failures that another attempt moments later does not mend."""

HTTP_CLIENTS: Final = frozenset(("httpx", "httpx2"))
"""The package whose errors come through: one under huggingface_hub 1, the other under 2."""

ABSENT: Final = frozenset(("no-config", "no-safetensors", "missing-shard"))
"""Kinds of `Unreadable` that, in a cache, may only say that it is not whole."""

T = TypeVar("T")


def read_repo(repo: Repo) -> Checkpoint:
    """Read a repo or a folder in it; with HF_HUB_OFFLINE set, its cached snapshot.

    Raises `Unreadable`: no-such-source, no-such-repo, gated-repo, no-access,
    no-such-revision, network, bad-answer, not-cached, and what `read_folder` does.
    """
    with explained(repo.name):
        validate_repo_id(repo.id)
        return _read_cached(repo) if is_offline_mode() else read_folder(_RemoteFolder(repo))


def open_repo(repo: Repo) -> Folder:
    """A repo or a folder in it, to read files of; with HF_HUB_OFFLINE set, its cached snapshot.

    Raises `Unreadable`, as `read_repo` does before it reads a file.
    """
    with explained(repo.name):
        validate_repo_id(repo.id)
        return _folder_in(_snapshot(repo), repo) if is_offline_mode() else _RemoteFolder(repo)


class _RemoteFolder:
    """A folder of a repo at a commit, as `reading.Folder` describes one."""

    def __init__(self, repo: Repo) -> None:
        self.name = repo.name
        listing = _list_files(repo)
        self.origin = Origin("hub", repo.name, repo.revision, listing.commit)
        self._listing = listing
        self._prefix = f"{repo.folder}/" if repo.folder else ""
        inside = [path.removeprefix(self._prefix) for path in listing.sizes if path.startswith(self._prefix)]
        if repo.folder and not inside:
            raise Unreadable("no-such-source", self.name, "no such folder in the repo")
        self.names = sorted({top + slash for top, slash, _ in (path.partition("/") for path in inside)})
        self._headers = build_hf_headers(library_name=PROGRAM, library_version=__version__)

    def holds(self, path: str) -> bool:
        return posixpath.normpath(self._prefix + path) in self._listing.sizes

    def read_small(self, names: Sequence[str]) -> list[bytes]:
        return _at_once(self._read_small, names)

    def read_headers(self, names: Sequence[str]) -> list[WeightFile | Unreadable]:
        return _at_once(self._read_header, names)

    def _read_small(self, name: str) -> bytes:
        part = self._read(name, 0, MAX_JSON)
        if part.file_size > MAX_JSON:
            told = f"{part.file_size} bytes of JSON, {MAX_JSON} are the most"
            raise Unreadable("unreadable-file", f"{self.name}/{name}", told)
        return part.content

    def _read_header(self, name: str) -> WeightFile | Unreadable:
        told = f"{self.name}/{name}"
        try:
            part = self._read(name, 0, FIRST_READ)
            content, size = part.content, part.file_size
            end = PREFIX + header_length(content[:PREFIX], size, told)
            if end > len(content):
                content += self._read(name, len(content), end).content
            header = parse_header(content[PREFIX:end], size, told)
        except Unreadable as error:
            return error
        return WeightFile(name, size, len(content), header)

    def _read(self, name: str, begin: int, end: int) -> "_Part":
        """The bytes of a file from `begin` to before `end`, or to where it ends."""
        path = self._prefix + name
        if self._listing.sizes[path] == 0:
            return _Part(b"", 0)  # no range of it can be asked for
        with explained(f"{self.name}/{name}"):
            return _patiently(lambda: self._request(path, begin, end))

    def _request(self, path: str, begin: int, end: int) -> "_Part":
        """One ranged request. A server that ignores the range is read up to `end`, and no further."""
        listing = self._listing
        url = hf_hub_url(listing.repo_id, path, revision=listing.commit)
        headers = {**self._headers, "Accept-Encoding": "identity", "Range": f"bytes={begin}-{end - 1}"}
        timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
        with get_session().stream("GET", url, headers=headers, timeout=timeout) as response:
            hf_raise_for_status(response)
            commit = response.headers.get("X-Repo-Commit", listing.commit)
            if commit != listing.commit:
                raise _BadAnswer(f"commit {commit}, where {listing.commit} was asked for")
            start = begin if response.status_code == 206 else 0
            size = _file_size(response.headers, start, listing.sizes[path])
            content = bytearray()
            for chunk in response.iter_bytes():
                content += chunk
                if start + len(content) >= end:
                    break
        if start + len(content) < min(end, size):
            raise _CutShort(f"{start + len(content)} bytes where {min(end, size)} were promised")
        return _Part(bytes(content[begin - start : end - start]), size)


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of a file, and the size of the whole."""

    content: bytes
    file_size: int


@dataclass(frozen=True, slots=True)
class _Listing:
    """The files of a repo at a commit: path -> size in bytes, None where the Hub does not say."""

    repo_id: str
    commit: str
    sizes: dict[str, int | None]


class _BadAnswer(Exception):
    """An answer that no Hub gives."""


class _CutShort(Exception):
    """An answer that ends before what it promised."""


def _list_files(repo: Repo) -> _Listing:
    api = HfApi(library_name=PROGRAM, library_version=__version__)
    timeout = constants.HF_HUB_ETAG_TIMEOUT

    def ask() -> _Listing:
        info = api.model_info(repo.id, revision=repo.revision, files_metadata=True, timeout=timeout)
        if not re.fullmatch("[0-9a-f]{40}", info.sha or ""):
            raise _BadAnswer("no commit")
        return _Listing(info.id, str(info.sha), {file.rfilename: file.size for file in info.siblings or ()})

    try:
        return _patiently(ask)
    except HfHubHTTPError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # How huggingface_hub says that the JSON of an answer is not what a Hub sends.
        raise _BadAnswer(f"{type(error).__name__}: {error}") from None


def _file_size(headers: Mapping[str, str], start: int, listed: int | None) -> int:
    """The size of a file by the headers of an answer, or else by the listing."""
    ranged = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", headers.get("Content-Range", ""))
    if ranged:
        if int(ranged[1]) != start:
            raise _BadAnswer(f"Content-Range {ranged[0]}, where byte {start} was asked for")
        return int(ranged[2])
    if listed is not None:
        return listed
    if "Content-Encoding" in headers or not headers.get("Content-Length", "").isdigit():
        raise _BadAnswer("a file without its size")
    return int(headers["Content-Length"])


def _at_once(read: Callable[[str], T], names: Sequence[str]) -> list[T]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(read, names))


def _patiently(attempt: Callable[[], T]) -> T:
    """Try a few times, as long as the failure is one that may pass."""
    for wait in WAITS:
        try:
            with TRAFFIC.request():
                return attempt()
        except Exception as error:  # failures of the network have no common class in the versions of the hub
            delay, everyone = _delay(error, wait), _limits_all(error)
            if delay is None:
                if everyone and isinstance(error, HfHubHTTPError):
                    TRAFFIC.hold(_asked_for(error.response.headers) or 0)
                raise
        TRAFFIC.back_off(delay, everyone)
    with TRAFFIC.request():
        return attempt()


def _limits_all(error: Exception) -> bool:
    """Whether a failure is about all requests: too many of them, or a server that names its pause."""
    if not isinstance(error, HfHubHTTPError):
        return False
    status = error.response.status_code
    return status == 429 or (status == 503 and _asked_for(error.response.headers) is not None)


def _delay(error: Exception, wait: float) -> float | None:
    """Seconds until another attempt, `wait` where the server names none; None where there should be none."""
    if isinstance(error, HfHubHTTPError):
        asked = _asked_for(error.response.headers)
        if error.response.status_code not in PASSING or (asked or 0) > TRAFFIC.longest_wait:
            return None
        return wait if asked is None else asked
    passing = _from_http_client(error) and type(error).__name__ not in FOR_GOOD
    return wait if passing or isinstance(error, _CutShort) else None


def _asked_for(headers: Mapping[str, str]) -> float | None:
    """The wait in seconds that an answer asks for by `RateLimit` or `Retry-After`."""
    limit = parse_ratelimit_headers(headers)
    if limit is not None and limit.remaining == 0:
        return limit.reset_in_seconds + 1.0  # it counts whole seconds
    after = headers.get("Retry-After", "").strip()
    return float(after) if after.isdecimal() else None


def _from_http_client(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in HTTP_CLIENTS


@contextmanager
def explained(subject: str) -> Iterator[None]:
    """Turn what huggingface_hub raises into an `Unreadable` about `subject`."""
    with told_of(subject, explain):
        yield


@contextmanager
def told_of(subject: str, reason: Callable[[Exception], tuple[str, str] | None]) -> Iterator[None]:
    """Turn a failure into an `Unreadable` about `subject`, by the kind and the reason that it has."""
    try:
        yield
    except Unreadable:
        raise
    except Exception as error:  # as in _patiently; what has no reason goes on as it is
        told = reason(error)
        if told is None:
            raise
        raise Unreadable(told[0], subject, told[1]) from None


def explain(error: Exception) -> tuple[str, str] | None:
    """The kind and the reason of a failure, None for one that is not of the Hub, the network or the disk."""
    hub = constants.ENDPOINT
    match error:
        case GatedRepoError():
            return "gated-repo", "gated: accept its terms, and set HF_TOKEN to a token of that account"
        case RepositoryNotFoundError():
            return "no-such-repo", f"no such repo on {hub}, or a private one that needs another HF_TOKEN"
        case RevisionNotFoundError():
            return "no-such-revision", "the repo has no such revision"
        case RemoteEntryNotFoundError():
            return "bad-answer", f"{hub} lists it and does not have it"
        case DisabledRepoError():
            return "no-access", f"{hub} has disabled the repo"
        case HfHubHTTPError():
            return _explain_status(error.response.status_code)
        case HFValidationError():
            return "no-such-source", "not the name of a repo"
        case _BadAnswer():
            return "bad-answer", f"{hub} does not answer as a Hub does ({error})"
        case _CutShort():
            return "network", f"the answer of {hub} is cut short ({error})"
        case TooLong():
            return "network", f"{hub} was not asked, for it takes no request for another {error}"
        case OSError() if error.filename is not None:
            return "unreadable-file", f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, OSError) or _from_http_client(error):
        return "network", f"{hub} cannot be read ({type(error).__name__}: {error})"
    return None


def _explain_status(status: int) -> tuple[str, str]:
    hub = constants.ENDPOINT
    if status in (401, 403):
        return "no-access", f"{hub} answers {status}: set HF_TOKEN to a token that may read the repo"
    if status == 404:
        return "no-such-repo", f"{hub} answers {status}: no such repo or revision"
    if status == 429:
        return "network", f"{hub} answers {status}, too many requests: wait, or set HF_TOKEN"
    return "network", f"{hub} answers {status}"


def _read_cached(repo: Repo) -> Checkpoint:
    """Read the snapshot in the cache of huggingface_hub."""
    snapshot = _snapshot(repo)
    missing = _not_cached(repo, snapshot)
    partly = f"the cache holds only a part of the repo, without {', '.join(missing)}" if missing else ""
    try:
        checkpoint = read_folder(_folder_in(snapshot, repo))
    except Unreadable as error:
        if error.kind not in ABSENT:
            raise
        told = f"{error.reason} in the cache, and HF_HUB_OFFLINE is set"
        raise Unreadable("not-cached", repo.name, f"{told}: {partly}" if partly else told) from None
    if partly:
        remark = Remark("partial-snapshot", repo.name, f"{partly[0].upper()}{partly[1:]}.")
        return replace(checkpoint, remarks=(remark, *checkpoint.remarks))
    return checkpoint


def _snapshot(repo: Repo) -> Path:
    """Where the cache of huggingface_hub has the repo; raises `Unreadable` (not-cached)."""
    try:
        return Path(snapshot_download(repo.id, revision=repo.revision, local_files_only=True))
    except IncompleteSnapshotError as error:
        return Path(error.snapshot_path)
    except LocalEntryNotFoundError:
        raise Unreadable("not-cached", repo.name, "not in the cache, and HF_HUB_OFFLINE is set") from None


def _folder_in(snapshot: Path, repo: Repo) -> DiskFolder:
    folder = snapshot / repo.folder
    if not folder.is_dir():
        raise Unreadable("not-cached", repo.name, "the folder is not in the cache, and HF_HUB_OFFLINE is set")
    return DiskFolder(folder, Origin("hub", repo.name, repo.revision, snapshot.name), repo.name)


def _not_cached(repo: Repo, snapshot: Path) -> list[str]:
    """The files that an engine might read and a snapshot lacks, as far as the cache knows."""
    try:
        listed = get_cached_repo_tree(repo.id, revision=snapshot.name)
    except CachedRepoTreeNotFoundError:
        return []
    return [
        file.path
        for file in listed
        if posixpath.dirname(file.path) == repo.folder
        and file.path.endswith((JSON, WEIGHTS))
        and not (snapshot / file.path).is_file()
    ]
