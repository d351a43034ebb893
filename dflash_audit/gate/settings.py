"""The gate's settings of the working directory: a table of .dflash-audit.toml or of pyproject.toml.

Whoever runs the audit writes them, never who made the checkpoint: a folder that holds one has none.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from dflash_audit.gate.unusable import Unusable

OWN: Final = ".dflash-audit.toml"
SHARED: Final = "pyproject.toml"
NAME: Final = "dflash-audit"

NEAR: Final = b"dflash"
"""What a pyproject.toml has that might mean these settings, in whatever spelling."""

KEYS: Final[Mapping[str, type]] = {
    "fail-on": str,
    "select": list,
    "ignore": list,
    "baseline": str,
    "strict": bool,
}
"""Key -> what its value is; a list is one of strings."""

OF_CHECKPOINT: Final = ("config.json", os.path.join(".cache", "huggingface"))
"""What a folder has that came as a repo, or is to become one: a draft's config, a download's own notes."""

ENDINGS: Final = (".safetensors", ".safetensors.index.json")
CACHED: Final = f"{os.sep}snapshots{os.sep}"
"""In the path of whatever huggingface_hub has in its cache."""


def find() -> tuple[str, bytes] | None:
    """The file that may have settings, with its text: .dflash-audit.toml, and only without it the other."""
    for file in (OWN, SHARED):
        try:
            with open(file, "rb") as opened:
                text = opened.read()
        except (FileNotFoundError, IsADirectoryError):
            continue
        except OSError as error:
            raise Unusable(file, f"cannot be read: {error.strerror or error}") from None
        if file == OWN or NEAR in text.lower():
            return file, text
    return None


def not_trusted(source: str) -> str | None:
    """Why settings of the working directory are not read: it may be the checkpoint that brought them."""
    here = os.path.realpath(".")
    # Of a file the folder that it is named in, wherever a link leads.
    audited = os.path.realpath(source if os.path.isdir(source) else os.path.dirname(source))
    if os.path.exists(source) and os.path.commonpath((here, audited)) == audited:
        return "the working directory is what is audited"
    try:
        names = os.listdir(here)
    except OSError:
        return (
            "the working directory cannot be listed, and may hold a checkpoint, which may have brought them"
        )
    holds = any(os.path.exists(name) for name in OF_CHECKPOINT) or any(n.endswith(ENDINGS) for n in names)
    if holds or CACHED in f"{here}{os.sep}":
        return "the working directory holds a checkpoint, which may have brought them"
    return None


def parse(file: str, text: bytes) -> dict[str, Any]:
    """The table; a key that is not known stays in it. Raises Unusable."""
    # Only here: most working directories have no settings.
    import tomllib

    try:
        document: Any = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise Unusable(file, f"is no TOML: {error}") from None
    if file == SHARED:
        tool = document.get("tool", {})
        tool = tool if isinstance(tool, dict) else {}
        _refuse_misspelt(file, tool)
        document = tool.get(NAME, {})
    if not isinstance(document, dict):
        raise Unusable(file, f"tool.{NAME} is no table")
    for key, value in document.items():
        kind = KEYS.get(key, object)
        strings = not isinstance(value, list) or all(isinstance(item, str) for item in value)
        if not isinstance(value, kind) or (kind is list and not (value and strings)):
            words = {str: "a string", bool: "true or false", list: "a list of strings, not empty"}
            raise Unusable(file, f"{key} is not {words[kind]}")
    return document


def _refuse_misspelt(file: str, tool: Mapping[str, Any]) -> None:
    """A table under another spelling of the name, which would be settings that count for nothing."""
    for name in tool:
        if name != NAME and re.sub("[-_. ]", "", name.lower()) == NAME.replace("-", ""):
            raise Unusable(file, f"tool.{name} is not read: the table is [tool.{NAME}]")


def meant(file: str, text: bytes) -> bool:
    """Whether a file that is not to be read has settings, right or wrong."""
    try:
        return bool(parse(file, text))
    except Unusable:
        return True
