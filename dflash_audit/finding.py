"""A rule's verdict on a subject, and the note that a rule could not look."""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from dflash_audit.printable import with_short_numbers

Severity = Literal["error", "warning", "note"]

FailOn = Literal["error", "warning", "note", "never"]
"""The least severity that fails an audit."""

Waiver = Literal["known", "ignored"]
"""Why the gate lets a finding pass: a baseline has it, or it was asked to."""

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
"""From the worst down."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule says: the fact and its consequence in `message`, the mend in `hint`.

    `engine` is None where it holds for every engine. `subjects` are all the
    tensors, parameters or entries that one finding folds, `subject` names them in one.
    `ranks` are the tensor parallel sizes at which it holds, where several were
    asked for and it does not hold at all; with `about_size` the subject is that size
    itself. `waived` is set by the gate alone; no rule knows of it. `unmended` are the engines
    of a disagreement that no change was found for by the time it was judged.
    """

    rule: str
    severity: Severity
    engine: str | None
    subject: str
    message: str
    hint: str | None = None
    subjects: tuple[str, ...] = ()
    waived: Waiver | None = None
    ranks: tuple[int, ...] = ()
    about_size: bool = False
    unmended: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", with_short_numbers(self.message))
        if self.hint is not None:
            object.__setattr__(self, "hint", with_short_numbers(self.hint))

    @property
    def count(self) -> int:
        return max(1, len(self.subjects))


class Skip(NamedTuple):
    """A rule that did not look, and why."""

    rule: str
    reason: str
