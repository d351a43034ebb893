"""Several tensor parallel sizes in one audit: what holds at all of them is told once."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding, Skip
from dflash_audit.fold import enumerated
from dflash_audit.verdict import Verdict, verdict


class AtSize(NamedTuple):
    """The audit of one size: every engine's replay with `tp` ranks, and what the rules say of it."""

    tp: int
    runs: tuple[EngineRun, ...]
    findings: tuple[Finding, ...]
    skips: tuple[Skip, ...] = ()

    def verdict(self, engine: str) -> Verdict:
        """An engine's at this size."""
        return verdict(next(run for run in self.runs if run.engine == engine), self.findings)


def merged(sizes: Sequence[AtSize]) -> tuple[Finding, ...]:
    """The findings of all sizes, in the order in which they first appear.

    The same one at several sizes is one; where it does not hold at all of them, or is told in other
    words at another, it says what holds where.
    """
    found: dict[Hashable, list[tuple[int, Finding]]] = {}
    for size in sizes:
        before: Counter[Hashable] = Counter()
        for finding in size.findings:
            same = _same(finding)
            # The second of its kind at one size is the second at another.
            found.setdefault((same, before[same]), []).append((size.tp, finding))
            before[same] += 1
    return tuple(_one(of, [size.tp for size in sizes]) for of in found.values())


def merged_skips(sizes: Iterable[AtSize]) -> tuple[Skip, ...]:
    """Each rule that did not look, once for each reason."""
    return tuple(dict.fromkeys(skip for size in sizes for skip in size.skips))


def listed(ranks: Sequence[int]) -> str:
    """Sizes as a person reads them: `--tp 1, 4 and 8`."""
    return f"--tp {enumerated(map(str, ranks))}"


def _same(finding: Finding) -> Hashable:
    """What two sizes' findings have in common where they are the same; the size itself is no subject."""
    subjects = () if finding.about_size else (finding.subject, finding.subjects)
    return (finding.rule, finding.severity, finding.engine, subjects)


def _one(of: Sequence[tuple[int, Finding]], asked: Sequence[int]) -> Finding:
    ranks = tuple(tp for tp, _ in of)
    first = of[0][1]
    at_all = ranks == tuple(asked)
    return replace(
        first,
        subject=listed(ranks) if first.about_size else first.subject,
        message=_told([(tp, finding.message) for tp, finding in of], everywhere=at_all),
        hint=_told([(tp, finding.hint) for tp, finding in of if finding.hint], everywhere=True) or None,
        subjects=tuple(dict.fromkeys(chain.from_iterable(finding.subjects for _, finding in of))),
        ranks=() if at_all else ranks,
    )


def _told(said: Sequence[tuple[int, str]], *, everywhere: bool) -> str:
    """What is said at each size, the same words once; bare where they are the same `everywhere`."""
    at: dict[str, list[int]] = {}
    for tp, words in said:
        at.setdefault(words, []).append(tp)
    if everywhere and len(at) == 1:
        return next(iter(at))
    return " ".join(f"At {listed(ranks)}: {words}" for words, ranks in at.items())
