"""How a report is written; each format is imported when it is asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dflash_audit.formats.screen import Screen
    from dflash_audit.report import Report

FORMATS: Final[Mapping[str, str]] = {
    "text": "dflash_audit.formats.text",
    "json": "dflash_audit.formats.json_report",
    "jsonl": "dflash_audit.formats.json_report",
    "markdown": "dflash_audit.formats.markdown",
    "github": "dflash_audit.formats.github",
    "sarif": "dflash_audit.formats.sarif",
    "junit": "dflash_audit.formats.junit",
    "gitlab": "dflash_audit.formats.gitlab",
    "html": "dflash_audit.formats.html",
}


IN_PIECES: Final = ("json", "jsonl")


def render(name: str, report: "Report", screen: "Screen") -> str:
    """The report in the format of that name, without a newline at its end."""
    write: Callable[[Report, Screen], str] = import_module(FORMATS[name]).render
    return write(report, screen)


def pieces(name: str, report: "Report", screen: "Screen") -> list[str]:
    """As `render`, in pieces to write one after another, where the format makes any: it may be large."""
    if name not in IN_PIECES:
        return [render(name, report, screen)]
    write: Callable[[Report, Screen], list[str]] = import_module(FORMATS[name]).pieces
    return write(report, screen)
