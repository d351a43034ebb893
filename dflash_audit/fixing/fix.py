"""A repair from source to outcome: audited, mended, and audited again before it is offered."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from dflash_audit.auditing import Request, audit
from dflash_audit.bounded_match import own_budget
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import ENGINES, LIVE, SUPERSEDED, engine
from dflash_audit.engines.installed.packages import PACKAGES
from dflash_audit.errors import Unreadable
from dflash_audit.facts import Facts
from dflash_audit.fixing.harm import brought
from dflash_audit.fixing.json_text import NotEditable, rewritten
from dflash_audit.fixing.recipe import Recipe, recipe
from dflash_audit.fixing.score import score
from dflash_audit.fixing.search import Found, search
from dflash_audit.fixing.writing import write_config
from dflash_audit.judge import judge
from dflash_audit.repairs.edit import Proposal, edited
from dflash_audit.report import FOUND, PASSED, UNREADABLE, Report
from dflash_audit.selfcheck.check import nearest_profile
from dflash_audit.sources.checkpoint import CONFIG, Checkpoint
from dflash_audit.sources.disk import read_path
from dflash_audit.sources.local_copy import local_copy

Outcome = Literal["nothing-to-mend", "mended", "harmful", "not-enough", "no-change", "not-editable"]


@dataclass(frozen=True, slots=True)
class Fix:
    """What a repair came to.

    `before` and `after` are the audits without and with the edits, `after` None where
    there are none. The edits of a `mended` checkpoint are offered, those of `not-enough`
    leave an engine failing and are not. Those of `harmful` make an engine that does not
    decide load what it did not before and lose of it what `harms` says: they are offered
    where that is `accepted`. `reason` says why the text is `not-editable`. `backup` is
    where the original lies once the change is written, `unwritten` whether it was to be
    and was not.
    """

    outcome: Outcome
    before: Report
    after: Report | None = None
    edits: Proposal = ()
    old: bytes = b""
    new: bytes = b""
    harms: tuple[tuple[str, str], ...] = ()
    recipe: Recipe | None = None
    reason: str | None = None
    accepted: bool = False
    backup: Path | None = None
    unwritten: bool = False
    error: Unreadable | None = None

    @property
    def offered(self) -> bool:
        """Whether the change may be written."""
        return self.outcome == "mended" or (self.outcome == "harmful" and self.accepted)

    @property
    def exit_code(self) -> int:
        """3 for what could not be read, run or written, 1 where an engine is left failing, else 0."""
        if self.error is not None or self.before.error is not None:
            return UNREADABLE
        return PASSED if self.offered or self.outcome == "nothing-to-mend" else FOUND

    @property
    def diff(self) -> str:
        """The change as a unified diff of config.json, each line with its end."""
        old, new = (_lines(raw.decode()) for raw in (self.old, self.new))
        marked = [
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in unified_diff(old, new, f"a/{CONFIG}", f"b/{CONFIG}")
        ]
        return "".join(marked)


def _lines(text: str) -> list[str]:
    """Lines as `diff` has them: a line feed ends one, and nothing else does."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def fix(request: Request, accept_loss: bool = False) -> Fix:
    """The smallest change of config.json with which every gating engine serves the checkpoint.

    With `accept_loss` one is offered too that makes another engine lose a part of it.
    """
    before = audit(request)
    if before.error is not None or before.checkpoint is None:
        return Fix("no-change", before)
    if not any(before.verdict(run) == "fail" for run in before.runs if run.engine in before.gating):
        return Fix("nothing-to-mend", before)
    try:
        with own_budget():
            return replace(_mend(request, before, before.checkpoint), accepted=accept_loss)
    except Unreadable as error:
        return Fix("no-change", before, error=error)


def write(fixed: Fix) -> Fix:
    """Write the config.json that is offered, the original beside it; `error` where that fails."""
    if not fixed.offered or fixed.before.checkpoint is None:
        return replace(fixed, unwritten=bool(fixed.edits))
    try:
        backup = write_config(local_copy(fixed.before.checkpoint), fixed.old, fixed.new)
    except Unreadable as error:
        return replace(fixed, error=error, unwritten=True)
    return replace(fixed, backup=backup)


def _mend(request: Request, before: Report, checkpoint: Checkpoint) -> Fix:
    profiles = tuple(
        run
        for run in before.runs
        if run.engine in ENGINES and (run.engine not in SUPERSEDED or run.engine in request.gating)
    )
    facts = Facts(checkpoint, profiles, request.gating, before.conditions)
    found = _without_harm(facts, _searched(before))
    if not found.edits:
        return Fix("no-change", before, recipe=recipe(facts))
    old = checkpoint.json_files.raw(CONFIG)
    try:
        new = _text(old, checkpoint, found)
    except NotEditable as error:
        return Fix("not-editable", before, reason=error.reason)
    after = _audited(request, before.conditions, checkpoint, new)
    harms = tuple(brought(facts, found.facts))
    served = all(after.verdict(run) in ("pass", "warn") for run in after.runs if run.engine in request.gating)
    outcome: Outcome = "mended" if served and not harms else "harmful" if served else "not-enough"
    helps = None if outcome == "mended" else recipe(found.facts)
    return Fix(outcome, before, after, found.edits, old, new, harms, helps)


def _without_harm(facts: Facts, deciding: frozenset[str]) -> Found:
    """The smallest change for the engines that decide; one for all engines where that one harms another."""
    found = search(facts, deciding)
    if brought(facts, found.facts):
        wider = search(facts, ENGINES)
        if score(wider.facts, deciding).serves and not brought(facts, wider.facts):
            return wider
    return found


def _searched(before: Report) -> frozenset[str]:
    """The gating profiles, and for an engine that runs itself the one that is nearest to its version."""
    live = [run for run in before.runs if run.engine in LIVE]
    return frozenset(
        [name for name in before.gating if name in ENGINES]
        + [nearest_profile(PACKAGES[run.engine], run.version or "") for run in live]
    )


def _text(old: bytes, checkpoint: Checkpoint, found: Found) -> bytes:
    """The text of the mended config.json, read back."""
    wanted = edited(checkpoint.config, found.edits)
    try:
        new = rewritten(old.decode(), wanted)
        as_wanted = json.dumps(json.loads(new), sort_keys=True) == json.dumps(wanted, sort_keys=True)
    except RecursionError:
        raise NotEditable("it is nested too deep") from None
    if not as_wanted:
        raise NotEditable("it is set in a way that this tool does not know how to keep")
    return new.encode()


def _audited(request: Request, conditions: Conditions, checkpoint: Checkpoint, new: bytes) -> Report:
    """The audit of the checkpoint with that config.json."""
    mended = replace(checkpoint, config=json.loads(new))
    runs = tuple(engine(name).replay(mended, conditions) for name in ENGINES)
    runs += tuple(_run_itself(name, mended, new, conditions) for name in LIVE if name in request.gating)
    findings, skips = judge(Facts(mended, runs, request.gating, conditions))
    return Report(
        mended.origin,
        checkpoint=mended,
        runs=runs,
        gating=request.gating,
        findings=tuple(findings),
        skips=tuple(skips),
        conditions=conditions,
        fail_on=request.fail_on,
    )


def _run_itself(name: str, mended: Checkpoint, new: bytes, conditions: Conditions) -> EngineRun:
    """An engine that opens the checkpoint itself, on a folder that has the new config.json."""
    if mended.kind == "hub":
        return engine(name).replay(mended, conditions)
    with _mended_folder(mended, new) as folder:
        return engine(name).replay(read_path(folder), conditions)


@contextmanager
def _mended_folder(mended: Checkpoint, new: bytes) -> Iterator[str]:
    """A folder of links to what the checkpoint's own has, with another config.json.

    It is called as the checkpoint's is: some of the engine's choices hang on that.
    """
    own = local_copy(mended).resolve()
    single = None if os.path.isdir(mended.id) else Path(mended.id).name
    with TemporaryDirectory(prefix="dflash-audit-") as scratch:
        folder = Path(scratch, own.name or "draft")
        folder.mkdir()
        for path in own.iterdir():
            other_weights = (
                single is not None and path.name != single and not path.name.endswith("_config.json")
            )
            if path.name != CONFIG and not other_weights:
                (folder / path.name).symlink_to(path)
        (folder / CONFIG).write_bytes(new)
        yield str(folder)
