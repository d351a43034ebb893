"""Code that lies beside a draft is not run, whatever the installed package makes of its config.

Source: transformers 5.20.2 `dynamic_module_utils.py`: whatever a package asks for, it is
this function that runs the file.
"""

from typing import Any, NoReturn

from transformers import dynamic_module_utils


class RemoteCode(Exception):
    """A config names code of its own."""


def run_no_remote_code() -> None:
    """Call before the first draft."""

    def refuse(class_name: Any, *_: Any, **__: Any) -> NoReturn:
        raise RemoteCode(f"{class_name} is code of the checkpoint, which an audit does not run")

    dynamic_module_utils.get_class_in_module = refuse
