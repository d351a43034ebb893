"""Several tensor parallel sizes in one audit: what holds at all of them is told once."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding, Skip
from dflash_audit.verdict import Verdict, verdict


@dataclass(frozen=True, slots=True)
class AtSize:
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

    The same one at several sizes is one, with the first's words; one that does not hold at all of
    them says where it does.
    """
    found: dict[Hashable, list[tuple[int, Finding]]] = {}
    for size in sizes:
        for finding in size.findings:
            found.setdefault(_same(finding, size.tp), []).append((size.tp, finding))
    return tuple(_one(of, [size.tp for size in sizes]) for of in found.values())


def merged_skips(sizes: Iterable[AtSize]) -> tuple[Skip, ...]:
    """Each rule that did not look, once for each reason."""
    return tuple(dict.fromkeys(skip for size in sizes for skip in size.skips))


def listed(ranks: Sequence[int]) -> str:
    """Sizes as a person reads them: `--tp 1, 4 and 8`."""
    *most, last = map(str, ranks)
    return f"--tp {', '.join(most)} and {last}" if most else f"--tp {last}"


def _same(finding: Finding, tp: int) -> Hashable:
    """What two sizes' findings have in common where they are the same; one about the size has no subject."""
    about_the_size = finding.subject == f"--tp {tp}"
    subjects = () if about_the_size else (finding.subject, finding.subjects)
    return (finding.rule, finding.severity, finding.engine, subjects)


def _one(of: Sequence[tuple[int, Finding]], asked: Sequence[int]) -> Finding:
    ranks = tuple(tp for tp, _ in of)
    first = of[0][1]
    subjects = tuple(dict.fromkeys(subject for _, finding in of for subject in finding.subjects))
    if ranks == tuple(asked):
        return replace(first, subjects=subjects)
    message = f"At {listed(ranks)}: {first.message}"
    return replace(first, message=message, subjects=subjects, ranks=ranks)
