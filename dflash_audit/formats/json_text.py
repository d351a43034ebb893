"""Values as JSON, in which no name out of a checkpoint is more than a string."""

import json
from typing import Any

from dflash_audit.printable import LOG_COMMAND


def json_text(value: Any, indent: int | None = None) -> str:
    """`value` in ASCII, on one line without an `indent`, and no command to a CI system."""
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(value, ensure_ascii=True, separators=separators, allow_nan=False, indent=indent)
    return LOG_COMMAND.sub(r"\\u0023#", text)
