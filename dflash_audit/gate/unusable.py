"""A file that tells the gate what to do, and cannot be used."""

from dflash_audit.usage import WrongUsage


class Unusable(WrongUsage):
    """A baseline or a file of settings that is not there, broken or of another version: exit code 2.

    Its text is one line for people, which names the file.
    """

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
