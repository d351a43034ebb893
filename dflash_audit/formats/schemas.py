"""The JSON Schemas of what the program prints, as the package carries them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

SCHEMAS: Final[Mapping[str, str]] = {
    "report": "json_report.schema.json",
    "diff": "diff_json.schema.json",
}
"""Name -> its file in this folder."""


def schema_text(name: str) -> str:
    """The JSON Schema of that name, without a newline at its end."""
    return Path(__file__).with_name(SCHEMAS[name]).read_text(encoding="utf-8").rstrip()
