"""Hold the audit against a real engine on random drafts, and shrink where they differ.

    python scripts/random_parity.py --sglang-python PYTHON [--count N] [--seed S] [--gpu CARD] [--record FILE]
    python scripts/random_parity.py --vllm-python PYTHON ...

PYTHON is that of an environment with sglang==0.5.23, which is asked as it is and with the
change of `sglang-next`, or with sglang==0.5.19, or with vllm==0.33.0; it is told that it is on
the card. Cases are those of `random_cases.py`, with `--for-vllm` for vLLM: the same seed makes
the same. A disagreement is made as small as it gets, and written to `--out` as a case folder
with its record, ready for `fixtures/regressions`; they are printed smallest first. `--record`
writes what was compared as JSON, of which `parity_page.py` makes a row of docs/parity.md. Exit
code 1 with a disagreement.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from against_engine.asked import EngineDied, Engines  # noqa: E402
from against_engine.shrink import shrunk, size  # noqa: E402
from materialize import materialize  # noqa: E402
from parity.case import Case as Folder  # noqa: E402
from parity.comparison import disagreements  # noqa: E402
from random_cases import make, make_for_vllm, write  # noqa: E402
from random_drafts.case import Case  # noqa: E402
from record_cases import write_lines  # noqa: E402

from dflash_audit.cards import CARDS, DEFAULT_CARD  # noqa: E402
from dflash_audit.engines import engine  # noqa: E402
from dflash_audit.errors import Unreadable  # noqa: E402
from dflash_audit.facts import Facts  # noqa: E402
from dflash_audit.formats.json_report import document  # noqa: E402
from dflash_audit.judge import engine_findings  # noqa: E402
from dflash_audit.report import Report  # noqa: E402
from dflash_audit.sources.checkpoint import Origin  # noqa: E402
from dflash_audit.sources.disk import read_path  # noqa: E402

Records = dict[str, dict[str, Any]]


@dataclass
class Outcome:
    """What both said of one case. `differences` are of (engine, aspect: text)."""

    records: Records = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    differences: list[tuple[str, str]] = field(default_factory=list)
    not_read: bool = False

    @property
    def kinds(self) -> set[tuple[str, str]]:
        """(engine, aspect) of every difference."""
        return {(engine, text.partition(":")[0]) for engine, text in self.differences}


@dataclass
class Disagreement:
    """A case on which they differ, as it was made and as small as it got."""

    name: str
    case: Case
    outcome: Outcome


@dataclass
class Tally:
    """What a run compared; everything counted by its name."""

    cases: int = 0
    not_read: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    disagreed: Counter[str] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)
    methods: Counter[str] = field(default_factory=Counter)
    stages: Counter[str] = field(default_factory=Counter)
    ranks: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, case: Case, outcome: Outcome) -> None:
        family, _, method = kind.partition("-")
        self.cases += 1
        self.not_read += outcome.not_read
        self.families[family] += 1
        self.methods[method] += 1
        self.ranks[option(case, "--tp", "1")] += 1
        if outcome.not_read:
            return
        for name, record in outcome.records.items():
            if name in outcome.skipped:
                self.skipped[name] += 1
                continue
            self.compared[name] += 1
            self.stages[record["stage"] or "loaded"] += 1
        self.disagreed.update({name for name, _ in outcome.differences})


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold the audit against a real engine on random drafts.")
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--sglang-python", metavar="PYTHON")
    asked.add_argument("--vllm-python", metavar="PYTHON")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gpu", default=DEFAULT_CARD, choices=CARDS, help="the card that is claimed")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "parity", help="where shrunk cases go")
    parser.add_argument("--most", type=int, default=20, help="disagreements to shrink, one of each kind")
    parser.add_argument("--record", type=Path, help="where to write what was compared")
    given = parser.parse_args()
    began = time.monotonic()
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder, engines_of(given) as engines:
        versions = engines.versions
        differing = [*differing_of(engines, made(given), given.seed, Path(folder), tally)]
        kinds = one_of_each(differing)[: given.most]
        found = [smallest(engines, one, Path(folder)) for one in kinds]
    tell(found, given.out, given.gpu)
    summary = summarize(tally, versions, given.seed, given.gpu)
    print(json.dumps(summary, indent=2))
    print(f"{tally.cases} cases in {time.monotonic() - began:.0f} s", file=sys.stderr)
    if given.record:
        given.record.parent.mkdir(parents=True, exist_ok=True)
        given.record.write_text(json.dumps(summary, indent=2) + "\n")
    return 1 if tally.disagreed else 0


def engines_of(given: argparse.Namespace) -> Engines:
    """The engines of the environment that was named."""
    python, kind = (given.vllm_python, "vllm") if given.vllm_python else (given.sglang_python, "sglang")
    return Engines(python, CARDS[given.gpu], kind)


def made(given: argparse.Namespace) -> Iterator[tuple[int, str, Case]]:
    """The cases of the run, each with its number, and its family and method."""
    for number in range(given.count):
        if given.vllm_python:
            yield number, *make_for_vllm(given.seed, number)
        else:
            yield number, *make(given.seed, number)


def differing_of(
    engines: Engines, cases: Iterable[tuple[int, str, Case]], seed: int, scratch: Path, tally: Tally
) -> Iterator[Disagreement]:
    """Of numbered cases those on which the audit and an engine differ; each is counted in `tally`."""
    for number, kind, case in cases:
        name = f"{kind}-{seed:02}{number:05}"
        outcome = compare(engines, case, scratch)
        tally.add(kind, case, outcome)
        if outcome.differences:
            print(f"{name}: {str(outcome.differences[0])[:300]}", file=sys.stderr)
            yield Disagreement(name, case, outcome)
        if number % 500 == 499:
            print(f"{number + 1} cases", file=sys.stderr)


def compare(engines: Engines, case: Case, scratch: Path) -> Outcome:
    """What the engines and the audit say of a case."""
    with tempfile.TemporaryDirectory(dir=scratch) as place:
        folder = Path(place, "case")
        write(folder, case)
        outcome = Outcome()
        try:
            report = report_on(folder, Path(place, "draft"), engines)
        except Exception as error:
            outcome.differences = [("audit", f"crash: {type(error).__name__}: {error}")]
            return outcome
        if report["error"] is not None:
            outcome.not_read = True
            return outcome
        try:
            outcome.records = engines.records(folder)
        except EngineDied:
            outcome.differences = [("engine", "death: its process ended")]
            return outcome
        entries = {entry["name"]: entry for entry in report["engines"]}
        outcome.skipped = [name for name in outcome.records if entries[name]["verdict"] == "skipped"]
        for name, record in outcome.records.items():
            lines = disagreements(Folder(folder), record, name, report)
            outcome.differences += [(name, line) for line in lines]
        return outcome


def report_on(folder: Path, target: Path, engines: Engines) -> dict[str, Any]:
    """The JSON report on a case for the engines that are asked: without the search for better hints."""
    case = Folder(folder)
    conditions = replace(case.conditions, capability=engines.capability)
    try:
        checkpoint = read_path(materialize(folder, target))
    except Unreadable as error:
        return document(Report(Origin("local", str(target)), error=error))
    runs = tuple(engine(name).replay(checkpoint, conditions) for name in engines.names)
    facts = Facts(checkpoint, runs, frozenset(engines.names), conditions)
    findings = tuple(finding for run in runs for finding in engine_findings(run, facts))
    report = Report(checkpoint.origin, checkpoint, runs, facts.gating, findings)
    return document(report)


def option(case: Case, name: str, default: str) -> str:
    """The value of one of a case's options."""
    return case.options[case.options.index(name) + 1] if name in case.options else default


def one_of_each(found: list[Disagreement]) -> list[Disagreement]:
    """The smallest case for each way to differ: by engine, and by what differs."""
    smallest_of: dict[tuple[tuple[str, str], ...], Disagreement] = {}
    for one in sorted(found, key=lambda one: size(one.case)):
        smallest_of.setdefault(tuple(sorted({(e, _gist(text)) for e, text in one.outcome.differences})), one)
    return [*smallest_of.values()]


def _gist(text: str) -> str:
    return re.sub(r"[0-9]+|layers\.\S+", "#", text)[:80]


def smallest(engines: Engines, one: Disagreement, scratch: Path) -> Disagreement:
    """The same disagreement on as small a case as is found."""
    kinds = one.outcome.kinds

    def holds(case: Case) -> bool:
        return bool(kinds & compare(engines, case, scratch).kinds)

    case = shrunk(one.case, holds)
    return Disagreement(one.name, case, compare(engines, case, scratch))


def tell(found: list[Disagreement], out: Path, card: str) -> None:
    """Print the disagreements, smallest first, and write each out as a recorded case of that card."""
    for one in sorted(found, key=lambda one: size(one.case)):
        folder = out / one.name
        one.case.options += [] if card == DEFAULT_CARD else ["--gpu", card]
        write(folder, one.case)
        (folder / "expected.json").write_text(write_lines(one.outcome.records) + "\n")
        print(f"{folder}: {len(one.case.tensors)} tensors")
        for name, text in one.outcome.differences[:8]:
            print(f"    {name}: {text[:300]}")


def summarize(tally: Tally, versions: dict[str, str], seed: int, card: str) -> dict[str, Any]:
    """The run as JSON."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": versions,
        "card": card,
        "seed": seed,
        "cases": tally.cases,
        "not_read": tally.not_read,
        "engines": {
            name: {
                "compared": tally.compared[name],
                "not_replayed": tally.skipped[name],
                "disagreements": tally.disagreed[name],
            }
            for name in sorted({*tally.compared, *tally.skipped, *tally.disagreed})
        },
        **{
            name: dict(sorted(getattr(tally, name).items()))
            for name in ("stages", "families", "methods", "ranks")
        },
    }


if __name__ == "__main__":
    sys.exit(main())
