"""The audit as a library, for `from dflash_audit import …`. It prints nothing and reads no settings."""

import os
from collections.abc import Iterable
from typing import Any

from dflash_audit import usage
from dflash_audit.auditing import Request
from dflash_audit.auditing import audit as audit_request
from dflash_audit.cards import CARDS, DEFAULT_CARD
from dflash_audit.engine_run import Conditions
from dflash_audit.engines import DEFAULT, ENGINES, LIVE
from dflash_audit.finding import FailOn, Severity
from dflash_audit.gate import words
from dflash_audit.gate.controls import Controls
from dflash_audit.gate.waive import waive
from dflash_audit.report import Report
from dflash_audit.usage import WrongUsage, deciding, given, installed_version, known, one_rank
from dflash_audit.warmup.options import Options

AnyPath = str | os.PathLike[str]


def audit(
    source: AnyPath,
    *,
    engines: str | Iterable[str] = DEFAULT,
    revision: str | None = None,
    quantization: str | None = None,
    tp: int | Iterable[int] = 1,
    gpu: str = DEFAULT_CARD,
    attention_backend: str | None = None,
    target: AnyPath | None = None,
    fail_on: FailOn = "error",
    select: str | Iterable[str] | None = None,
    ignore: str | Iterable[str] = (),
    baseline: AnyPath | None = None,
    strict: bool = False,
    warmup: Options | None = None,
) -> Report:
    """Audit one checkpoint, as `dflash-audit SOURCE` does with the options of the same names.

    `source` is a path or a repo of the Hub as on the command line; a `pathlib.Path` is always a path.
    `engines` name those that decide, "all" for every profile; `tp` counts tensor parallel ranks, of one size
    or of several that are each audited; `gpu` is a card as --gpu has it; `attention_backend` is the server's
    --speculative-draft-attention-backend.
    `target` is the model that the draft is made for, named as `source` is.
    `baseline` is a file of --write-baseline. `warmup` says how to run the draft forward too.

    What keeps the checkpoint from being read or run is the report's `error`, and its `exit_code` is 3.
    Raises `WrongUsage`, a ValueError, for what the command line ends with exit code 2 for.
    """
    gating = _gating(_several(engines))
    sizes = _sizes(tp)
    _check(gating, sizes, warmup)
    controls = Controls(
        fail_on=words.fail_on(fail_on),
        select=None if select is None else words.selected(_some(select, "select names no rule")),
        ignore=words.ignores(_several(ignore)),
        known=None if baseline is None else _known_findings(baseline),
        strict=strict,
    )
    conditions = Conditions(
        sizes[0],
        CARDS[known(gpu.lower(), CARDS, "card")],
        None if quantization is None else usage.quantization(quantization),
        None if attention_backend is None else usage.attention_backend(attention_backend),
    )
    beside = None if target is None else _source(target)
    of = None if revision is None else given(revision)
    request = Request(_source(source), gating, conditions, controls.fail_on, of, beside, warmup, sizes)
    return waive(audit_request(request), controls)


def to_json(report: Report) -> dict[str, Any]:
    """The report as the object that --json prints: the contract of version 1."""
    # Only here, as in `render`: most programs look at the report itself.
    from dflash_audit.formats.json_report import document

    return document(report)


def render(report: Report, format: str = "text") -> str:
    """The report as --format has it, without a newline at its end. Raises WrongUsage for another format."""
    from dflash_audit.formats import FORMATS
    from dflash_audit.formats import render as write
    from dflash_audit.formats.screen import Screen

    return write(known(format.lower(), FORMATS, "format"), report, Screen())


def _source(source: AnyPath) -> str:
    """A name that may be a repo's only if it was given as a string."""
    return source if isinstance(source, str) else os.path.join(".", os.fspath(source))


def _several(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else [*names]


def _some(names: str | Iterable[str], complaint: str) -> list[str]:
    """At least one: with none, nothing at all would fail an audit."""
    found = _several(names)
    if not found:
        raise WrongUsage(complaint)
    return found


def _gating(names: Iterable[str]) -> frozenset[str]:
    asked = [known(name, [*ENGINES, *LIVE, "all"], "engine") for name in _some(names, "engines names none")]
    for name in asked:
        if name in LIVE:
            installed_version(name)
    return deciding(asked)


def _sizes(tp: int | Iterable[int]) -> tuple[int, ...]:
    """What --tp takes: numbers of ranks, each once."""
    if isinstance(tp, str) or not isinstance(tp, int | Iterable):
        raise WrongUsage(f"tp is {tp!r}: a number of ranks, or several")
    sizes = (tp,) if isinstance(tp, int) else tuple(tp)
    if not sizes:
        raise WrongUsage("tp names no number of ranks")
    for size in sizes:
        if not isinstance(size, int) or isinstance(size, bool):
            raise WrongUsage(f"tp is {size!r}: a number of ranks, or several")
        if size < 1:
            raise WrongUsage(f"tp is {size}: at least one rank")
        if sizes.count(size) > 1:
            raise WrongUsage(f"tp names {size} twice")
    return sizes


def _check(gating: frozenset[str], sizes: Iterable[int], warmup: Options | None) -> None:
    for tp in sizes:
        one_rank(gating, tp, warmup is not None)
    if warmup is None:
        return
    # Only here: an audit without a warm-up does without.
    from dflash_audit.warmup.extra import missing
    from dflash_audit.warmup.words import backend, device, dtype

    if (told := missing()) is not None:
        raise WrongUsage(told)
    device(warmup.device)
    dtype(warmup.dtype)
    backend(warmup.backend)


def _known_findings(baseline: AnyPath) -> dict[str, Severity]:
    # Only here: most audits have no baseline.
    from dflash_audit.gate.baseline import read

    return read(os.fspath(baseline))
