"""What is odd about a checkpoint's layout, though an engine reads it all the same."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Remark:
    """One oddity: `kind` is a kebab-case word, `subject` a tensor or a file, `message` a sentence."""

    kind: str
    subject: str
    message: str
