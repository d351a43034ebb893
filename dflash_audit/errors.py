"""How the audit says that it cannot look, or not tell: bad content is a finding instead."""

from dflash_audit.printable import printable


class Unreadable(Exception):
    """The source could not be read or run, or the report not be written; the program ends with exit code 3.

    `kind` is one kebab-case word for programs. `message` is one line for people:
    `subject`, the file or the source that is meant, and the `reason`.
    """

    def __init__(self, kind: str, subject: str, reason: str) -> None:
        self.kind = kind
        self.reason = reason
        self.message = printable(f"{subject}: {reason}")
        super().__init__(self.message)
