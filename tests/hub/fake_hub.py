"""A small Hub on 127.0.0.1, for the real huggingface_hub client to talk to.

It serves repos as commits of files: the info of a repo, its tree and its files
with ranges, redirects and the Hub's errors. `log` holds every request. Knobs
make it misbehave: queued failures, ignored ranges, cut answers, a push between
two requests. What is written to it is in `fake_writes`. Standard library only.
"""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from hub.fake_writes import Account, Discussion, answer_write, git_oid

LFS_FROM = 10_000
"""Files of at least as many bytes are listed as Git LFS files."""


@dataclass
class Repo:
    """Commits (40 hex digits -> path -> content) and refs to them."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    private: bool = False
    gated: bool = False
    disabled: bool = False
    discussions: dict[int, Discussion] = field(default_factory=dict)

    def push(self, files: Mapping[str, bytes], ref: str = "main") -> str:
        """Commit exactly these files to a ref; returns the commit."""
        seed = json.dumps([len(self.commits), sorted(files)]).encode()
        commit = hashlib.sha1(seed, usedforsecurity=False).hexdigest()
        self.commits[commit] = dict(files)
        self.refs[ref] = commit
        return commit

    def discuss(self, base: str | None, author: str = "someone") -> Discussion:
        """Open a discussion, or a pull request into `base`, as the next number."""
        number = len(self.discussions) + 1
        made = self.discussions[number] = Discussion(number, author, base)
        return made

    def pull_request(self, files: Mapping[str, bytes], base: str = "main") -> Discussion:
        """Open a pull request of exactly these files."""
        made = self.discuss(base)
        self.push(files, f"refs/pr/{made.number}")
        return made


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Message
    """Looked up in any case."""
    body: bytes = b""

    @property
    def range(self) -> str | None:
        return self.headers.get("Range")


@dataclass
class Failure:
    """An answer in place of the right one, to the next requests whose path holds `where`."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    where: str = ""
    times: int = 1


@dataclass
class FakeHub:
    url: str = ""
    token: str = "hf_right"
    accounts: dict[str, Account] = field(
        default_factory=lambda: {
            "hf_right": Account("me", writes=frozenset(("org", "me"))),
            "hf_reader": Account("reader"),
        }
    )
    """Token -> whose it is."""
    stored: dict[str, bytes] = field(default_factory=dict)
    """Large files by SHA-256, whether a commit names them or not."""
    xet: str = ""
    """Where Xet's chunks go."""
    before_write: Callable[[str], object] = len
    """Called with the path before each answer to a write: to push, or to wait."""
    repos: dict[str, Repo] = field(default_factory=dict)
    log: list[Request] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    lose: list[str] = field(default_factory=list)
    """Parts of paths: what is written there is done, and the answer never comes."""
    ignore_range: bool = False
    error_codes: bool = True
    name_commit: bool = True
    list_sizes: bool = True
    cut_to: int | None = None
    """Bytes after which answers with a file end, though more are promised."""
    cuts: int = 10**6
    """How many answers are cut so."""
    storage: str | None = None
    """Another origin that large files are redirected to."""
    page: int = 1000
    """Repos on one page of a listing."""
    delay: float = 0.0
    """Seconds that pass before each answer."""
    before_file: Callable[[str], object] = len
    """Called with the path of a file's URL before each answer with one: to push, or to wait."""
    sent: int = 0
    """Bytes of files that were written to a connection."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def repo(self, name: str, files: Mapping[str, bytes] | None = None) -> Repo:
        """A repo of that name, made with one commit of `files`."""
        made = self.repos[name] = Repo()
        made.push(files or {})
        return made

    def paths(self) -> list[str]:
        """What was asked for, methods and hosts left out."""
        return [request.path for request in self.log]

    def writes(self) -> list[str]:
        """What was asked for with other methods than those that read; checks of a card write nothing."""
        return [
            f"{request.method} {request.path}"
            for request in self.log
            if request.method not in ("GET", "HEAD") and request.path != "/api/validate-yaml"
        ]


def _listed(name: str, repo: Repo) -> dict[str, Any]:
    """A repo as a listing with files and configs has it."""
    files = repo.commits[repo.refs["main"]]
    config: Any = {}
    with suppress(ValueError):
        config = json.loads(files.get("config.json", b"{}"))
    told = {key: config[key] for key in ("architectures", "model_type") if key in config}
    siblings = [{"rfilename": path} for path in files]
    return {
        "id": name,
        "siblings": siblings,
        "config": told,
        "private": False,
        "tags": [],
        "gated": repo.gated,
    }


@contextmanager
def serve(hub: FakeHub) -> Iterator[FakeHub]:
    """Run `hub` on a free port of 127.0.0.1."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer on a kept connection takes 40 ms

    def do_GET(self) -> None:
        hub = self.hub
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with hub.lock:
            hub.log.append(Request(self.command, self.path, self.headers, body))
        sleep(hub.delay)
        try:
            self._route(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # a client that read as much as it wanted

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _route(self, body: bytes) -> None:
        if failure := self._failure():
            self._answer(failure.status, b"", dict(failure.headers))
            return
        path = urlsplit(self.path).path
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        account = self.hub.accounts.get(token)
        if written := answer_write(self.hub, account, self.command, self.path, body):
            if any(where in path for where in self.hub.lose):
                self.close_connection = True
                return
            self._answer(written.status, json.dumps(written.body).encode(), written.headers)
            return
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+?)(?:/(revision|tree)/([^/]+))?(?:/(.*))?", path)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if path == "/api/models":
            self._models(parse_qs(urlsplit(self.path).query))
        elif api:
            self._api(api[1], api[2] or "revision", unquote(api[3] or "main"))
        elif file:
            self.hub.before_file(path)
            self._file(file[1], unquote(file[2]), unquote(file[3]))
        else:
            self._answer(404, b"")

    def _models(self, asked: dict[str, list[str]]) -> None:
        """A page of the listing; private repos are in nobody's."""
        author, search = (asked.get(key, [""])[0] for key in ("author", "search"))
        names = [
            name
            for name, repo in self.hub.repos.items()
            if not repo.private and search.lower() in name.lower() and author in ("", name.partition("/")[0])
        ]
        begin = int(asked.get("cursor", ["0"])[0])
        end = begin + self.hub.page
        more = {**asked, "cursor": [str(end)]}
        link = {"Link": f'<{self.hub.url}/api/models?{urlencode(more, doseq=True)}>; rel="next"'}
        listed = [_listed(name, self.hub.repos[name]) for name in names[begin:end]]
        self._answer(200, json.dumps(listed).encode(), link if end < len(names) else {})

    def _failure(self) -> Failure | None:
        with self.hub.lock:
            for failure in self.hub.failures:
                if failure.times and failure.where in self.path:
                    failure.times -= 1
                    return failure
        return None

    def _api(self, name: str, what: str, revision: str) -> None:
        repo = self._readable(name)
        commit = repo and self._commit(repo, revision)
        if not repo or not commit:
            return
        files = repo.commits[commit]
        if what == "tree":
            listed = [{"type": "file", "path": p, **self._entry(c, "oid")} for p, c in files.items()]
            self._answer(200, json.dumps(listed).encode())
            return
        siblings = [{"rfilename": path, **self._entry(content, "sha256")} for path, content in files.items()]
        if not self.hub.list_sizes:
            siblings = [{"rfilename": path} for path in files]
        info = {"id": name, "sha": commit, "siblings": siblings, "private": repo.private, "tags": []}
        self._answer(200, json.dumps(info).encode())

    def _entry(self, content: bytes, sha256: str) -> dict[str, Any]:
        oid = git_oid(content)
        entry: dict[str, Any] = {"size": len(content), "blobId": oid, "oid": oid}
        if len(content) >= LFS_FROM:
            digest = hashlib.sha256(content).hexdigest()
            entry["lfs"] = {sha256: digest, "size": len(content), "pointerSize": 134}
        return entry

    def _file(self, name: str, revision: str, path: str) -> None:
        hub = self.hub
        repo = self._readable(name, gate=True)
        commit = repo and self._commit(repo, revision)
        if not repo or not commit:
            return
        content = repo.commits[commit].get(path)
        if content is None:
            self._error(404, "EntryNotFound", {"X-Repo-Commit": commit})
            return
        headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"'}
        if hub.name_commit:
            headers["X-Repo-Commit"] = commit
        if hub.storage and len(content) >= LFS_FROM:
            self._answer(302, b"", {**headers, "Location": f"{hub.storage}{self.path}"})
            return
        self._ranged(content, headers)

    def _ranged(self, content: bytes, headers: dict[str, str]) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not asked or self.hub.ignore_range:
            self._answer(200, content, headers, cut=True)
            return
        begin, end = int(asked[1]), min(int(asked[2]) + 1 if asked[2] else len(content), len(content))
        if begin >= len(content):
            self._answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
            return
        headers = {**headers, "Content-Range": f"bytes {begin}-{end - 1}/{len(content)}"}
        self._answer(206, content[begin:end], headers, cut=True)

    def _readable(self, name: str, gate: bool = False) -> Repo | None:
        """The repo where the client may read it; else its refusal is sent."""
        repo = self.hub.repos.get(name)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        allowed = token == self.hub.token or token in self.hub.accounts
        if repo is None or (repo.private and not allowed):
            self._error(401, "RepoNotFound", {"X-Error-Message": "Invalid username or password."})
        elif repo.disabled:
            self._error(403, "", {"X-Error-Message": "Access to this resource is disabled."})
        elif gate and repo.gated and not allowed:
            self._error(403, "GatedRepo")
        else:
            return repo
        return None

    def _commit(self, repo: Repo, revision: str) -> str | None:
        commit = repo.refs.get(revision, revision if revision in repo.commits else None)
        if commit is None:
            self._error(404, "RevisionNotFound")
        return commit

    def _error(self, status: int, code: str, headers: Mapping[str, str] | None = None) -> None:
        named = {"X-Error-Code": code} if code and self.hub.error_codes else {}
        self._answer(status, b"", {**named, **(headers or {})})

    def _answer(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, cut: bool = False
    ) -> None:
        hub = self.hub
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with hub.lock:
            cut = cut and self.command != "HEAD"
            if cut and hub.cut_to is not None and hub.cut_to < len(body) and hub.cuts > 0:
                hub.cuts -= 1
                body = body[: hub.cut_to]
                self.close_connection = True
        if self.command != "HEAD":
            for begin in range(0, len(body), 2**16):
                self.wfile.write(body[begin : begin + 2**16])
                hub.sent += len(body[begin : begin + 2**16])
