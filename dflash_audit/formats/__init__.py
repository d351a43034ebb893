"""How a report is written."""

from collections.abc import Callable, Mapping
from typing import Final

from dflash_audit.formats import json_report, text
from dflash_audit.report import Report

FORMATS: Final[Mapping[str, Callable[[Report], str]]] = {
    "text": text.render,
    "json": json_report.render,
}
