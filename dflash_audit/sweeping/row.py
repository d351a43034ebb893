"""What stays of a report once its line is written: enough for the table and the exit code."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dflash_audit.finding import SEVERITIES
from dflash_audit.report import FOUND, PASSED, UNREADABLE

WORST_FIRST: Final = (UNREADABLE, FOUND, PASSED)
LONGEST: Final = 600
"""Characters that are kept of a cause, so that one row's names do not fill the memory of thousands."""


class Key(NamedTuple):
    """What tells one source from another: `report.Origin` without the commit, a path in one spelling."""

    kind: str
    id: str
    revision: str | None


def key_of(kind: str, id: str, revision: str | None) -> Key:
    """The key of an origin; `a/`, `./a` and the same path from the root are one."""
    return Key(kind, os.path.abspath(id) if id and kind == "local" else id, revision)


@dataclass(frozen=True, slots=True)
class Row:
    """One repo or folder: an engine's verdict each, the exit code of its audit, what made it so.

    `id` is the source's as it was written, `gating` are the engines that decide, `conditions` what
    the audit went by, as `compared` spells it, `error` is the kind of the
    report's error, None without one.
    """

    key: Key
    id: str
    verdicts: Mapping[str, str]
    gating: frozenset[str]
    conditions: Mapping[str, Any]
    exit_code: int
    cause: str
    error: str | None

    @property
    def name(self) -> str:
        return self.id if self.key.revision is None else f"{self.id}@{self.key.revision}"

    @property
    def judged(self) -> bool:
        """Whether an engine that decides gave a verdict."""
        return any(self.verdicts[engine] != "skipped" for engine in self.gating)


def row(report: Mapping[str, Any]) -> Row:
    """Of a report as `json_report.document` makes it; KeyError or TypeError where it is none."""
    source, error = report["source"], report["error"]
    gating = frozenset(engine["name"] for engine in report["engines"] if engine["gating"])
    return Row(
        key_of(source["kind"], source["id"], source["revision"]),
        source["id"],
        {engine["name"]: engine["verdict"] for engine in report["engines"]},
        gating,
        compared(report["conditions"], _target(report["target"])),
        report["summary"]["exit_code"],
        (error["message"] if error else _cause(report, gating))[:LONGEST],
        error["kind"] if error else None,
    )


def compared(conditions: Mapping[str, Any], target: Key | None) -> dict[str, Any]:
    """What an audit goes by, in one spelling: the sizes in order, and the target as its key tells it."""
    return {**conditions, "tp": sorted(conditions["tp"]), "target": None if target is None else _told(target)}


def _told(target: Key) -> str:
    return target.id if target.revision is None else f"{target.id}@{target.revision}"


def _target(target: Mapping[str, Any] | None) -> Key | None:
    return None if target is None else key_of(target["kind"], target["id"], target["revision"])


def _cause(report: Mapping[str, Any], gating: frozenset[str]) -> str:
    """The rule of the worst finding that counts, notes left out; or the first skip that fails the audit."""
    for severity in SEVERITIES[:2]:
        for finding in report["findings"]:
            counts = finding["engine"] is None or finding["engine"] in gating
            if counts and finding["severity"] == severity and not (finding["known"] or finding["ignored"]):
                return str(finding["rule"])
    return next((f"not looked at: {skip['reason']}" for skip in report["skips"] if skip["failing"]), "")


def worst(rows: Iterable[Row]) -> int:
    """The exit code of all: a source that could not be read, before one that was found wanting."""
    codes = {each.exit_code for each in rows}
    return next((code for code in WORST_FIRST if code in codes), PASSED)
