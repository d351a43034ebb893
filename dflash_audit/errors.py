"""How the audit says that it cannot look, or not tell: bad content is a finding instead."""

from typing import Final

from dflash_audit.printable import printable

LFS_POINTER: Final = "a Git LFS pointer, not the file that it stands for (`git lfs pull` fetches that)"
"""The reason why a file cannot be read that git left in another's place."""


class Unreadable(Exception):
    """The source could not be read or run, or the report not be written; the program ends with exit code 3.

    `kind` is one kebab-case word for programs. `message` is one line for people:
    `subject`, the file or the source that is meant, and the `reason`.
    """

    def __init__(self, kind: str, subject: str, reason: str) -> None:
        self.kind = kind
        self.subject = subject
        self.reason = reason
        self.message = printable(f"{subject}: {reason}")
        super().__init__(self.message)
