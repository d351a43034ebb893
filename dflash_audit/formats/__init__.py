"""How a report is written; each format is imported when it is asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

from dflash_audit.formats.screen import Screen
from dflash_audit.report import Report

FORMATS: Final[Mapping[str, str]] = {
    "text": "dflash_audit.formats.text",
    "json": "dflash_audit.formats.json_report",
    "html": "dflash_audit.formats.html",
}


def render(name: str, report: Report, screen: Screen) -> str:
    """The report in the format of that name."""
    write: Callable[[Report, Screen], str] = import_module(FORMATS[name]).render
    return write(report, screen)
