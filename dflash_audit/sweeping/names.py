"""The sources of a sweep out of a file: one a line, or the lines of an earlier sweep."""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any, Final

from dflash_audit.gate.unusable import Unusable
from dflash_audit.sources.repo import SCHEME, Repo

COMMENT: Final = re.compile(r"(^|\s)#.*")


def read_names(file: str) -> list[str]:
    """The sources that a file names, `-` for stdin; raises Unusable."""
    try:
        if file == "-":
            content = sys.stdin.buffer.read() if sys.stdin else b""
        else:
            with open(file, "rb") as opened:
                content = opened.read()
    except OSError as error:
        raise Unusable(file, f"cannot be read: {error.strerror or error}") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unusable(file, f"is not UTF-8 (byte {error.start})") from None
    return [*_names(file, text)]


def _names(file: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith("{"):
            yield _of_report(f"{file}, line {number}", line)
        elif name := COMMENT.sub("", line).strip():
            yield name


def _of_report(told: str, line: str) -> str:
    try:
        return source_of(json.loads(line)["source"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unusable(told, "is no report: neither a source nor a line of an earlier sweep") from None


def source_of(told: dict[str, Any]) -> str:
    """A report's `source` as a user would write it; KeyError or TypeError where it is none."""
    name = told["id"]
    if not isinstance(name, str):
        raise TypeError
    if told["kind"] != "hub":
        return name
    repo, _, folder = name.partition(":")
    return written(Repo(repo, told["revision"], folder))


def written(repo: Repo) -> str:
    """A repo as a source that no path stands in for."""
    revision = f"@{repo.revision}" if repo.revision else ""
    return f"{SCHEME}{repo.id}{revision}{f':{repo.folder}' if repo.folder else ''}"
