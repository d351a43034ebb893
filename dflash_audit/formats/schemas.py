"""The JSON Schemas that the package carries."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

SCHEMAS: Final[Mapping[str, str]] = {
    "report": "dflash_audit.formats.json_report",
    "pr": "dflash_audit.formats.pr.json",
    "fix": "dflash_audit.formats.fix.json",
    "diff": "dflash_audit.formats.diff.json",
}
"""What is described -> where its `schema` is."""


def schema(name: str) -> str:
    """The JSON Schema of that name, as text."""
    text: Callable[[], str] = import_module(SCHEMAS[name]).schema
    return text()
