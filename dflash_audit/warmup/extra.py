"""Whether the extra that a warm-up needs is installed. Imports nothing of it."""

from importlib.util import find_spec
from typing import Final

PACKAGES: Final = ("torch", "safetensors", "compressed_tensors")
"""What `pyproject.toml` lists for the extra `warmup`, by the names that are imported."""


def missing() -> str | None:
    """What to say where a package is not there; None where all are."""
    absent = [package.replace("_", "-") for package in PACKAGES if find_spec(package) is None]
    if not absent:
        return None
    return f"--warmup needs {', '.join(absent)}: pip install 'dflash-audit[warmup]'"
