"""A repair for a person in a terminal: the verdicts, the change, why, and what is left."""

from collections.abc import Iterable, Iterator
from typing import Final

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dflash_audit.finding import Finding
from dflash_audit.fixing.fix import Fix, Outcome
from dflash_audit.fold import title
from dflash_audit.formats.clean import clean
from dflash_audit.formats.console import Part, written
from dflash_audit.formats.fix.json import left
from dflash_audit.formats.outline import WORDS
from dflash_audit.formats.screen import Screen
from dflash_audit.formats.text import VERDICT_COLORS
from dflash_audit.printable import printable

HEADINGS: Final[dict[Outcome, str]] = {
    "nothing-to-mend": "Nothing to mend: no deciding engine fails this checkpoint.",
    "mended": "With this change of config.json the deciding engines load the checkpoint as it is stored:",
    "harmful": "With this change the deciding engines load the checkpoint as it is stored, and another one,"
    " which does not load it now, would load it too and lose a part of it:",
    "not-enough": "No change of config.json makes it pass. This one goes farthest, and is not offered:",
    "no-change": "No change of config.json helps.",
    "not-editable": "config.json needs a change and is left as it is:",
}

LINE_COLORS: Final = {"+": "green", "-": "red", "@": "cyan"}


def render(fix: Fix, screen: Screen) -> str:
    """The whole outcome as lines that fit the screen; a line of the diff is never folded."""
    return written(_parts(fix), screen)


def _parts(fix: Fix) -> Iterator[Part]:
    yield Text(clean(fix.before.origin.id), style="bold")
    yield from _verdicts(fix)
    yield Text()
    reason = f" {clean(fix.reason)}." if fix.reason else ""
    yield Text(_heading(fix) + reason)
    yield from _change(fix)
    yield from _harms(fix)
    yield from _left(fix)
    yield from _recipe(fix)
    yield from _written(fix)
    yield Text(f"exit code {fix.exit_code}", style="dim")


def _heading(fix: Fix) -> str:
    """That of the outcome; what no deciding engine judged is not said to be whole."""
    before = fix.before
    judged = [run for run in before.runs if run.engine in before.gating and before.verdict(run) != "skipped"]
    if fix.outcome == "nothing-to-mend" and not judged:
        return "Nothing is known to mend: no deciding engine judged this checkpoint."
    return HEADINGS[fix.outcome]


def _verdicts(fix: Fix) -> Iterator[Part]:
    then = {run.engine: fix.after.verdict(run) for run in fix.after.runs} if fix.after else {}
    table = Table.grid(padding=(0, 2))
    if then:
        table.add_row("", Text("now", style="dim"), Text("with the change", style="dim"))
    # As the audit has them, those that decide first.
    for run in sorted(fix.before.runs, key=lambda run: run.engine not in fix.before.gating):
        verdicts = [fix.before.verdict(run), *([then[run.engine]] if run.engine in then else [])]
        words = [Text(WORDS[verdict], VERDICT_COLORS[verdict]) for verdict in verdicts]
        aside = "" if run.engine in fix.before.gating else "(does not count)"
        table.add_row(f"  {run.engine}", *words, Text(aside, style="dim"))
    yield table


def _change(fix: Fix) -> Iterator[Part]:
    if not fix.edits:
        return
    yield Text()
    for line in fix.diff.split("\n")[:-1]:
        yield printable(line.removesuffix("\r")), LINE_COLORS.get(line[:1], "")
    yield Text()
    said: dict[tuple[str, str | None], list[str]] = {}
    for edit in fix.edits:
        said.setdefault((edit.why, edit.doubt), []).append(edit.key)
    for (why, doubt), keys in said.items():
        yield Text(f"{clean(', '.join(keys))}: {clean(why)}")
        if doubt:
            yield Padding(Text(f"Check this: {clean(doubt)}", style="yellow"), (0, 0, 0, 2))


def _harms(fix: Fix) -> Iterator[Part]:
    if fix.outcome != "harmful":
        return
    yield Text()
    yield Text("What it costs:")
    for line in _costs(fix.harms):
        yield Padding(Text(clean(line)), (0, 0, 0, 2))


def _costs(harms: Iterable[tuple[str, str]]) -> Iterator[str]:
    """What each engine loses, names of one kind in one line."""
    told: dict[tuple[str, str, str], list[str]] = {}
    for engine, what in harms:
        verb, _, rest = what.partition(" ")
        name, _, end = rest.partition(" ")
        told.setdefault((engine, verb, f" {end}".rstrip()), []).append(name)
    for (engine, verb, end), names in told.items():
        yield f"{engine} then {verb} {title(names)}{end}"


def _left(fix: Fix) -> Iterator[Part]:
    findings = left(fix.after or fix.before)
    if not findings:
        return
    yield Text()
    yield Text("What is left:")
    for finding in findings:
        yield Padding(Text(_told(finding)), (0, 0, 0, 2))


def _told(finding: Finding) -> str:
    hint = f" {clean(finding.hint)}" if finding.hint else ""
    return f"{finding.severity} {finding.rule}, {clean(finding.subject)}: {clean(finding.message)}{hint}"


def _recipe(fix: Fix) -> Iterator[Part]:
    if fix.recipe is None:
        return
    yield Text()
    scheme = "the scheme that is stored" if fix.recipe.as_stored else "a scheme that the engines take"
    yield Text(
        f"A new quantization run helps: quantize the dense draft again, in {scheme}, and leave dense what an"
        " engine cannot build otherwise. The recipe for llm-compressor:"
    )
    yield Text()
    for line in fix.recipe.text.split("\n"):
        yield printable(line), ""
    yield Text()


def _written(fix: Fix) -> Iterator[Part]:
    told = _what_became_of_it(fix)
    if told is not None:
        yield Text()
        yield Text(told)


def _what_became_of_it(fix: Fix) -> str | None:
    if fix.backup is not None:
        return f"Written. The original is {clean(str(fix.backup))}."
    if fix.unwritten:
        why = clean(fix.error.message) if fix.error is not None else NOT_OFFERED.get(fix.outcome, "")
        return f"Not written: {why}"
    if fix.offered and fix.error is None:
        local = fix.before.origin.kind == "local"
        return "Write it with --write." if local else "No repo is written to: upload the changed file."
    return f"It is not offered so: {NOT_OFFERED['harmful']}" if fix.outcome == "harmful" else None


NOT_OFFERED: Final[dict[Outcome, str]] = {
    "harmful": "make it by hand, or add --accept-loss, if nobody serves the draft with that engine.",
    "not-enough": "an engine that decides would still fail.",
}
