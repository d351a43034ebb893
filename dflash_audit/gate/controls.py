"""What whoever runs an audit lets pass."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from dflash_audit.finding import FailOn, Finding, Severity


class Ignore(NamedTuple):
    """A rule that is ignored, or what it finds about subjects that `glob` matches."""

    rule: str
    glob: str | None = None

    def takes(self, finding: Finding, subject: str) -> bool:
        """Whether it is about this subject of a finding; the finding's title, word for word, is about all."""
        if finding.rule != self.rule:
            return False
        # Word for word too, for a subject such as `qkv_proj.weight[q]` is a pattern of something else.
        return self.glob in (None, subject, finding.subject) or fnmatchcase(subject, self.glob or "")


class Controls(NamedTuple):
    """`select` are the rules to go by, None for all.

    `known` are the fingerprints of a baseline, with the severities under which they are
    known. With `strict` a rule that did not look fails the audit.
    """

    fail_on: FailOn = "error"
    select: frozenset[str] | None = None
    ignore: tuple[Ignore, ...] = ()
    known: Mapping[str, Severity] | None = None
    strict: bool = False

    def off(self, rule: str) -> bool:
        """Whether nothing that the rule says moves the exit code."""
        if self.select is not None and rule not in self.select:
            return True
        return Ignore(rule) in self.ignore

    def ignores(self, finding: Finding, subject: str) -> bool:
        return self.off(finding.rule) or any(each.takes(finding, subject) for each in self.ignore)
