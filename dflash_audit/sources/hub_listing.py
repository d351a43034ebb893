"""The repos of the Hub by author or by a word in their names, as its listing tells of them."""

from collections.abc import Iterator
from dataclasses import dataclass

from huggingface_hub import HfApi

from dflash_audit import __version__
from dflash_audit.sources.hub import PROGRAM, explained


@dataclass(frozen=True, slots=True)
class Listed:
    """A repo: its files' paths, and the `architectures` of its config.json, as the Hub tells them."""

    id: str
    files: tuple[str, ...]
    architectures: tuple[str, ...] = ()


def list_repos(author: str | None, search: str | None) -> Iterator[Listed]:
    """All that match both, a page of the listing a request; raises `Unreadable` (network, bad-answer)."""
    api = HfApi(library_name=PROGRAM, library_version=__version__)
    with explained("the listing of repos"):
        for info in api.list_models(author=author, search=search, full=True, fetch_config=True):
            named = info.config.get("architectures") if isinstance(info.config, dict) else None
            architectures = (
                [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
            )
            files = tuple(file.rfilename for file in info.siblings or ())
            yield Listed(info.id, files, tuple(architectures))
