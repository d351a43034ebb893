"""A rule's verdict on a subject, and the note that a rule could not look."""

from dataclasses import dataclass
from typing import Final, Literal

Severity = Literal["error", "warning", "note"]

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
"""From the worst down."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule says: the fact and its consequence in `message`, the mend in `hint`.

    `engine` is None where it holds for every engine. `subjects` are all the
    tensors, parameters or entries that one finding folds, `subject` names them in one.
    """

    rule: str
    severity: Severity
    engine: str | None
    subject: str
    message: str
    hint: str | None = None
    subjects: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return max(1, len(self.subjects))


@dataclass(frozen=True, slots=True)
class Skip:
    """A rule that did not look, and why."""

    rule: str
    reason: str
