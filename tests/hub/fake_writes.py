"""What the fake Hub does with writes: new repos, uploads, commits and pull requests, discussions.

As huggingface_hub 1.31 to 2.4 asks for it: `preupload` tells how each file goes up, a large one by the Git
LFS protocol to a URL that `batch` names, or by Xet, and one `commit` holds the small ones and names the large
ones. Standard library only.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from hub.fake_hub import FakeHub, Repo

NOW = "2026-01-01T00:00:00.000Z"
LFS = "*.safetensors filter=lfs diff=lfs merge=lfs -text\n"
"""The .gitattributes of a new repo."""


@dataclass(frozen=True)
class Account:
    """A user, and the namespaces whose repos the user may write to."""

    name: str
    writes: frozenset[str] = frozenset()


@dataclass
class Comment:
    id: str
    author: str
    content: str
    history: list[str] = field(default_factory=list)
    hidden: bool = False


@dataclass
class Discussion:
    """A discussion, or a pull request into the branch `base`."""

    number: int
    author: str
    base: str | None = None
    status: str = "open"
    comments: list[Comment] = field(default_factory=list)

    def say(self, author: str, content: str) -> Comment:
        made = Comment(f"{self.number:012x}{len(self.comments):012x}", author, content)
        self.comments.append(made)
        return made


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


def git_oid(content: bytes) -> str:
    """The name that git has for a file's content."""
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()


def refused(status: int, code: str = "", message: str = "") -> Answer:
    named = {"X-Error-Code": code} if code else {}
    return Answer(status, {"error": message}, {**named, **({"X-Error-Message": message} if message else {})})


def answer_write(
    hub: "FakeHub", account: Account | None, method: str, url: str, body: bytes
) -> Answer | None:
    """The answer to a request that is about writing, or about who asks; None for any other."""
    parts = urlsplit(url)
    for asked, pattern, handler in ROUTES:
        match = re.fullmatch(pattern, parts.path) if asked == method else None
        if match:
            if method != "GET":
                hub.before_write(parts.path)
            words = [unquote(word) for word in match.groups()]
            return handler(_Asked(hub, account, "create_pr" in parse_qs(parts.query), body), *words)
    return None


@dataclass(frozen=True)
class _Asked:
    hub: "FakeHub"
    account: Account | None
    create_pr: bool
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body or b"null")

    def may_write(self, name: str) -> bool:
        return self.account is not None and name.split("/")[0] in self.account.writes

    def writable(self, name: str) -> "Repo | Answer":
        """The repo, where the account may write to it, or propose to."""
        repo = self.hub.repos.get(name)
        if self.account is None or repo is None:
            return refused(401 if self.account is None else 404, "RepoNotFound", "Repository not found")
        if not (self.create_pr or self.may_write(name)):
            return refused(403, "", "You don't have the rights to write to this repo")
        return repo


def _who(asked: _Asked) -> Answer:
    if asked.account is None:
        return refused(401, "", "Invalid username or password.")
    return Answer(200, {"type": "user", "name": asked.account.name})


def _create_repo(asked: _Asked) -> Answer:
    wanted = asked.json
    name = f"{wanted['organization']}/{wanted['name']}"
    if asked.account is None:
        return refused(401, "", "Invalid username or password.")
    if not asked.may_write(name):
        return refused(403, "", f"You don't have the rights to create a model under {wanted['organization']}")
    if name in asked.hub.repos:
        return refused(409, "", "You already created this model repo")
    repo = asked.hub.repo(name, {".gitattributes": LFS.encode()})
    repo.private = bool(wanted.get("private")) or wanted.get("visibility") == "private"
    return Answer(200, {"url": f"{asked.hub.url}/{name}"})


def _create_branch(asked: _Asked, name: str, branch: str) -> Answer:
    repo = asked.writable(name)
    if isinstance(repo, Answer):
        return repo
    repo.refs[branch] = (asked.json or {}).get("startingPoint", repo.refs["main"])
    return Answer(200, {})


def _preupload(asked: _Asked, name: str, revision: str) -> Answer:
    repo = asked.writable(name)
    if isinstance(repo, Answer):
        return repo
    if revision not in repo.refs:
        return refused(404, "RevisionNotFound")
    there = repo.commits[repo.refs[revision]]
    ignored = (asked.json.get("gitIgnore") or there.get(".gitignore", b"").decode()).split()
    return Answer(
        200,
        {
            "files": [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if _is_large(file, there) else "regular",
                    "shouldIgnore": any(fnmatch(file["path"], pattern) for pattern in ignored),
                    "oid": _oid(there.get(file["path"]), _is_large(file, there)),
                }
                for file in asked.json["files"]
            ]
        },
    )


def _is_large(file: Mapping[str, Any], there: Mapping[str, bytes]) -> bool:
    """As the repo's .gitattributes has it, and else by size."""
    patterns = [
        line.split()[0]
        for line in there.get(".gitattributes", b"").decode().splitlines()
        if "filter=lfs" in line
    ]
    return file["size"] > 10_000 or any(fnmatch(file["path"], pattern) for pattern in patterns)


def _oid(content: bytes | None, large: bool) -> str | None:
    if content is None:
        return None
    return hashlib.sha256(content).hexdigest() if large else git_oid(content)


def _batch(asked: _Asked, name: str) -> Answer:
    allowed = asked.may_write(name) or (asked.account is not None and "ref" not in asked.json)
    if not allowed:
        return refused(403, "", "You don't have the rights to write to this repo")
    objects = []
    for wanted in asked.json["objects"]:
        href = f"{asked.hub.url}/storage/{wanted['oid']}"
        actions = {"actions": {"upload": {"href": href}, "verify": {"href": f"{href}/verify"}}}
        objects.append({**wanted, **({} if wanted["oid"] in asked.hub.stored else actions)})
    return Answer(200, {"transfer": "basic", "objects": objects})


def _store(asked: _Asked, oid: str) -> Answer:
    if hashlib.sha256(asked.body).hexdigest() != oid:
        return refused(400, "", "content does not match its hash")
    asked.hub.stored[oid] = asked.body
    return Answer(200)


def _verify(asked: _Asked, oid: str) -> Answer:
    there = asked.hub.stored.get(oid)
    return Answer(200, {}) if there is not None and len(there) == asked.json["size"] else refused(404)


def _commit(asked: _Asked, name: str, revision: str) -> Answer:
    repo = asked.writable(name)
    if isinstance(repo, Answer):
        return repo
    if revision not in repo.refs:
        return refused(404, "RevisionNotFound")
    lines = [json.loads(line) for line in asked.body.splitlines()]
    (header,) = [line["value"] for line in lines if line["key"] == "header"]
    parent = header.get("parentCommit", repo.refs[revision])
    if parent != repo.refs[revision] and not asked.create_pr:
        return refused(412, "", "A commit has happened since. Please refresh and try again.")
    files = dict(repo.commits[parent])
    for line in lines:
        value = line["value"]
        if line["key"] == "file":
            files[value["path"]] = base64.b64decode(value["content"])
        elif line["key"] == "lfsFile":
            if value["oid"] not in asked.hub.stored and not asked.hub.xet:
                return refused(400, "", "Your push was rejected because an LFS pointer pointed to no file")
            # Of what went to Xet this Hub knows the hash alone.
            files[value["path"]] = asked.hub.stored.get(value["oid"], value["oid"].encode())
    pull = repo.discuss(revision, asked.account.name if asked.account else "") if asked.create_pr else None
    commit = repo.push(files, f"refs/pr/{pull.number}" if pull else revision)
    url = f"{asked.hub.url}/{name}"
    return Answer(
        200,
        {
            "success": True,
            "commitOid": commit,
            "commitUrl": f"{url}/commit/{commit}",
            "pullRequestUrl": f"{url}/discussions/{pull.number}" if pull else None,
        },
    )


def _validate_card(asked: _Asked) -> Answer:
    if "license: [" in asked.json["content"]:
        return Answer(400, {"errors": [{"message": "bad license"}], "warnings": []})
    warnings = [] if asked.json["content"].startswith("---") else [{"message": "empty or missing yaml"}]
    return Answer(200, {"errors": [], "warnings": warnings})


def _discussion(asked: _Asked, name: str, number: str) -> Answer:
    found = _found(asked, name, number)
    if isinstance(found, Answer):
        return found
    body = {
        "num": found.number,
        "title": "<script>alert(1)</script>",
        "author": {"name": found.author},
        "createdAt": NOW,
        "status": found.status,
        "repo": {"name": name, "type": "model"},
        "isPullRequest": found.base is not None,
        "events": [_event(comment) for comment in found.comments],
    }
    if found.base is not None:
        body |= {"changes": {"base": f"refs/heads/{found.base}"}, "filesWithConflicts": [], "diff": ""}
    return Answer(200, body)


def _found(asked: _Asked, name: str, number: str) -> "Discussion | Answer":
    repo = asked.hub.repos.get(name)
    if repo is None or (repo.private and asked.account is None):
        return refused(401, "RepoNotFound", "Invalid username or password.")
    return repo.discussions.get(int(number)) or refused(404, "", "Discussion not found")


def _event(comment: Comment) -> dict[str, Any]:
    return {
        "id": comment.id,
        "type": "comment",
        "createdAt": NOW,
        "author": {"name": comment.author},
        "data": {
            "edited": bool(comment.history),
            "hidden": comment.hidden,
            "latest": {"raw": "" if comment.hidden else comment.content, "html": "", "updatedAt": NOW},
            "history": [],
        },
    }


def _comment(asked: _Asked, name: str, number: str) -> Answer:
    found = _found(asked, name, number)
    if isinstance(found, Answer):
        return found
    if asked.account is None:
        return refused(401, "", "Invalid username or password.")
    return Answer(200, {"newMessage": _event(found.say(asked.account.name, asked.json["comment"]))})


def _edit(asked: _Asked, name: str, number: str, comment_id: str) -> Answer:
    found = _found(asked, name, number)
    if isinstance(found, Answer):
        return found
    for comment in found.comments:
        if comment.id == comment_id:
            if asked.account is None or comment.author != asked.account.name or comment.hidden:
                return refused(403, "", "You cannot edit this comment")
            comment.history.append(comment.content)
            comment.content = asked.json["content"]
            return Answer(200, {"updatedComment": _event(comment)})
    return refused(404, "", "no such comment")


def _xet_token(asked: _Asked, name: str, revision: str) -> Answer:
    """Where Xet's chunks go: into a folder, which hf_xet takes in place of its server."""
    return Answer(200, {"casUrl": asked.hub.xet, "accessToken": "xet", "exp": 4_000_000_000})


MODEL = r"/api/models/([^/]+/[^/]+)"

ROUTES: tuple[tuple[str, str, Callable[..., Answer]], ...] = (
    ("GET", r"/api/whoami-v2", _who),
    ("POST", r"/api/repos/create", _create_repo),
    ("POST", rf"{MODEL}/branch/(.+)", _create_branch),
    ("POST", rf"{MODEL}/preupload/([^/]+)", _preupload),
    ("POST", r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch", _batch),
    ("PUT", r"/storage/([0-9a-f]{64})", _store),
    ("POST", r"/storage/([0-9a-f]{64})/verify", _verify),
    ("POST", rf"{MODEL}/commit/([^/]+)", _commit),
    ("GET", rf"{MODEL}/xet-write-token/([^/]+)", _xet_token),
    ("POST", r"/api/validate-yaml", _validate_card),
    ("GET", rf"{MODEL}/discussions/(\d+)", _discussion),
    ("POST", rf"{MODEL}/discussions/(\d+)/comment", _comment),
    ("POST", rf"{MODEL}/discussions/(\d+)/comment/([0-9a-f]+)/edit", _edit),
)
"""Method, path -> who answers, given what was asked and the parts of the path."""
