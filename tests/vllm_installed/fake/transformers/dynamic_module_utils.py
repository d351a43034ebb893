"""Runs the code of a checkpoint: the child must see to it that this is not called."""

from pathlib import Path
from typing import Any


def get_class_in_module(class_name: str, module: str) -> Any:
    exec(Path(module).read_text())
    return class_name
