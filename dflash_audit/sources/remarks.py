"""What is odd about a checkpoint's layout, though an engine reads it all the same."""

from typing import NamedTuple


class Remark(NamedTuple):
    """One oddity: `kind` is a kebab-case word, `subject` a tensor or a file, `message` a sentence."""

    kind: str
    subject: str
    message: str
