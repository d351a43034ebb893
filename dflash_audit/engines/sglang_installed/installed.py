"""Whether SGLang is installed beside the audit, and which version. Imports nothing of it."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

HOW_TO_INSTALL: Final = "install SGLang into this environment (pip install sglang)"


def installed_version() -> str | None:
    """The version of the `sglang` that this Python would import, None where there is none."""
    if find_spec("sglang") is None:
        return None
    try:
        return version("sglang")
    except PackageNotFoundError:
        return "unknown"  # a source tree on the path, without metadata
