"""A repair for a person in a terminal: the verdicts, the change, why, and what is left."""

from collections.abc import Iterator
from typing import Final

from rich.padding import Padding
from rich.text import Text

from dflash_audit.finding import Finding
from dflash_audit.fixing.fix import Fix, Outcome
from dflash_audit.formats.clean import clean
from dflash_audit.formats.console import Part, written
from dflash_audit.formats.fix_json import left
from dflash_audit.formats.outline import WORDS
from dflash_audit.formats.screen import Screen
from dflash_audit.formats.text import VERDICT_COLORS
from dflash_audit.printable import printable

HEADINGS: Final[dict[Outcome, str]] = {
    "nothing-to-mend": "Nothing to mend: no deciding engine fails this checkpoint.",
    "mended": "With this change of config.json the deciding engines load the checkpoint as it is stored:",
    "harmful": "This change would serve the deciding engines, and is not offered: another engine would load"
    " the checkpoint without a word and lose a part of it.",
    "not-enough": "No change of config.json makes it pass. This one goes farthest, and is not offered:",
    "no-change": "No change of config.json helps.",
    "not-editable": "config.json needs a change and is left as it is:",
}

LINE_COLORS: Final = {"+": "green", "-": "red", "@": "cyan"}
MOST_HARMS: Final = 5


def render(fix: Fix, screen: Screen) -> str:
    """The whole outcome as lines that fit the screen; a line of the diff is never folded."""
    return written(_parts(fix), screen)


def _parts(fix: Fix) -> Iterator[Part]:
    yield Text(clean(fix.before.origin.id), style="bold")
    yield from _verdicts(fix)
    yield Text()
    reason = f" {clean(fix.reason)}." if fix.reason else ""
    yield Text(HEADINGS[fix.outcome] + reason)
    yield from _change(fix)
    yield from _harms(fix)
    yield from _left(fix)
    yield from _recipe(fix)
    yield from _written(fix)
    yield Text(f"exit code {fix.exit_code}", style="dim")


def _verdicts(fix: Fix) -> Iterator[Part]:
    then = {run.engine: fix.after.verdict(run) for run in fix.after.runs} if fix.after else {}
    width = max((len(run.engine) for run in fix.before.runs), default=0)
    for run in fix.before.runs:
        now = fix.before.verdict(run)
        line = Text(f"  {run.engine:{width}}  ").append(WORDS[now], VERDICT_COLORS[now])
        if run.engine in then:
            changed = then[run.engine]
            line.append(", with the change: ").append(WORDS[changed], VERDICT_COLORS[changed])
        if run.engine not in fix.before.gating:
            line.append("  (does not count)", style="dim")
        yield line


def _change(fix: Fix) -> Iterator[Part]:
    if not fix.edits:
        return
    yield Text()
    for line in fix.diff.split("\n")[:-1]:
        yield printable(line.removesuffix("\r")), LINE_COLORS.get(line[:1], "")
    yield Text()
    for edit in fix.edits:
        yield Text(f"{clean(edit.key)}: {clean(edit.why)}")
        if edit.doubt:
            yield Padding(Text(f"Check this: {clean(edit.doubt)}", style="yellow"), (0, 0, 0, 2))


def _harms(fix: Fix) -> Iterator[Part]:
    if not fix.harms:
        return
    yield Text()
    for engine, what in fix.harms[:MOST_HARMS]:
        yield Text(f"  {engine} then {clean(what)}")
    if len(fix.harms) > MOST_HARMS:
        yield Text(f"  and {len(fix.harms) - MOST_HARMS} more")


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
    if fix.backup is not None:
        yield Text(f"Written. The original is {clean(str(fix.backup))}.")
    elif fix.outcome == "mended" and fix.error is None:
        local = fix.before.origin.kind == "local"
        yield Text("Write it with --write." if local else "No repo is written to: upload the changed file.")
