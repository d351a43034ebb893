"""A sweep from its sources to its exit code."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from dflash_audit.errors import Unreadable
from dflash_audit.report import INTERRUPTED, UNREADABLE, Report
from dflash_audit.sources.source import origin
from dflash_audit.sources.traffic import TRAFFIC
from dflash_audit.sweeping.each import each
from dflash_audit.sweeping.lines import Lines
from dflash_audit.sweeping.progress import progress
from dflash_audit.sweeping.row import Key, Row, key_of, worst

PATIENCE: Final = 600.0
"""Most seconds that the Hub may make a sweep wait: its limits are counted over five minutes."""

AUDITS_A_REQUEST: Final = 2
"""Audits under way for each request that may be: while one computes, the request of another is."""


@dataclass(slots=True)
class Outcome:
    """The rows in the order of the sources, those of an earlier sweep too.

    `stopped` is set where it ended before its time, with requests under way that nobody waits for.
    """

    rows: list[Row] = field(default_factory=list)
    exit_code: int = 0
    stopped: bool = False
    troubles: list[str] = field(default_factory=list)


def by_key(sources: Iterable[str]) -> dict[Key, str]:
    """The sources in their order, each once."""
    keyed: dict[Key, str] = {}
    for source in sources:
        where = origin(source, None)
        keyed.setdefault(key_of(where.kind, where.id, where.revision), source)
    return keyed


def sweep(
    sources: Mapping[Key, str],
    earlier: Mapping[Key, Row],
    audit: Callable[[str], Report],
    jobs: int,
    lines: Lines,
    bar: bool,
) -> Outcome:
    """Audit what no earlier sweep has, and write a line for each as soon as it is done.

    `jobs` are the most requests to the Hub at once; `bar` shows how far it is, on a terminal.
    """
    TRAFFIC.share(jobs, PATIENCE)
    rows = {key: earlier[key] for key in sources if key in earlier}
    left = {source: key for key, source in sources.items() if key not in rows}
    outcome = Outcome()
    try:
        with progress(len(left), bar) as advance:
            for done in each(left, audit, AUDITS_A_REQUEST * jobs):
                lines.write(done.line)
                rows[left[done.source]] = done.row
                advance(done.row)
                if TRAFFIC.stopped():
                    break
        if len(rows) < len(sources):
            outcome.stopped, outcome.exit_code = True, UNREADABLE
            outcome.troubles.append(
                f"stopped, with {len(sources) - len(rows)} of {len(sources)} left:"
                f" the Hub takes no request for another {TRAFFIC.held():.0f} s"
            )
    except KeyboardInterrupt:
        outcome.stopped, outcome.exit_code = True, INTERRUPTED
        outcome.troubles.append(f"interrupted, with {len(sources) - len(rows)} of {len(sources)} left")
    except BrokenPipeError:  # whoever reads has seen enough
        outcome.stopped = True
    except Unreadable as error:
        outcome.stopped, outcome.exit_code = True, UNREADABLE
        outcome.troubles.append(error.message)
    outcome.rows = [rows[key] for key in sources if key in rows]
    outcome.exit_code = outcome.exit_code or worst(outcome.rows)
    return outcome
