"""How the replay of an engine says that the engine would stop, or that the audit does not know."""

from typing import Literal, NamedTuple

from dflash_audit.printable import with_short_numbers

Stage = Literal["config", "class", "quant_config", "build", "load"]


class Refused(Exception):
    """The engine raises here: `reason` is what it says, in a sentence."""

    pattern: str | None = None
    """The one that the engine would go on matching, where it does not raise but hang."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = with_short_numbers(reason)


class NoPattern(Refused):
    """Python does not compile a pattern: it raises `re.error` with `syntax`, without it OverflowError."""

    def __init__(self, reason: str, syntax: bool) -> None:
        super().__init__(reason)
        self.syntax = syntax


class Endless(Refused):
    """The engine tries to match `pattern` against a module's name, and does not come to an end."""

    def __init__(self, pattern: str, name: str) -> None:
        super().__init__(f"matching {pattern!r} against {name!r} does not end within seconds")
        self.pattern = pattern


class NotModelled(Exception):
    """The engine knows this class or method, and this audit does not replay it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Refusal(NamedTuple):
    """Where an engine stops: the stage, what it says, and the tensor in its hands if there is one.

    `pattern` is the one that it would go on matching, where it does not stop but hang.
    """

    stage: Stage
    reason: str
    tensor: str | None = None
    pattern: str | None = None
