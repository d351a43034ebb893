"""Write docs/formats.md: what each format is for, and a sample of it.

python scripts/format_page.py > docs/formats.md
"""

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from dflash_audit.auditing import Request, audit  # noqa: E402
from dflash_audit.formats import FORMATS, render  # noqa: E402
from dflash_audit.formats.screen import Screen  # noqa: E402

DRAFT: Final = "fixtures/seed-w8a16"
ENGINE: Final = "sglang-0.5.23"
WIDEST: Final = 160
"""Characters of a text in a sample."""

HEAD: Final = """\
# Formats

`dflash-audit SOURCE --format FORMAT` prints the report in one of these, `text` unless another is named.
`-o FILE` writes what would be printed into a file. `--format FORMAT=FILE` writes a file beside what is
printed, as often as it is given, so one run serves a log, a dashboard and an archive:

    dflash-audit DIR --format github --format sarif=audit.sarif --format json=audit.json

`--json` is `--format json`. Only one format without a FILE can be printed, and two formats cannot share a
FILE: both are usage errors, exit code 2. A file is written whole or not at all. Where that fails, for want of
a folder, of room or of permission, one line says so, the exit code is 3, the report's `error` is of the kind
`unwritable-file`, the other files are written all the same, and the report that `-o` was to take is printed.

| format | for | findings that do not count |
|---|---|---|
"""

ASIDE: Final = """
Findings of engines that do not decide count for nothing; the last column says what each format does with
them. Where the source could not be read, `text` prints nothing on stdout; every other format, and every file,
has the error.

A name out of a checkpoint can hold anything, and stays text: control characters and what no screen shows are
written as escapes, markup, mentions and links stand in code spans or are escaped as the format asks for, and
what a CI system would take for a command on a line of its log (`::error::`, `##[error]`) is broken up. A
program that reads JSON gets every name as it is.

Files are named as the checkout has them: relative to `GITHUB_WORKSPACE` or `CI_PROJECT_DIR` where that is
set, else to the working directory; those of a repo of the Hub as `org/name/config.json`. A finding about a
tensor is at the first weight file that holds one of its tensors, any other at config.json, or at
hf_quant_config.json if that is where the quantization is declared. Fingerprints hang on the rule, the engine,
the subject and the source's name, not on the words of a message.

This page is written by `scripts/format_page.py`, and a test checks that it is up to date. The samples are of
"""


@dataclass(frozen=True, slots=True)
class About:
    """What a format is for, what it does with findings that do not count, and what else there is to say.

    `sample` makes one, in `language`, of the whole report; None where it would show nothing new.
    """

    purpose: str
    uncounted: str
    more: str
    language: str = ""
    sample: Callable[[str], str] | None = None


def cut(text: str) -> str:
    """A JSON text laid out, with one entry a list and the beginning of long texts."""

    def shorter(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shorter(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [shorter(inner) for inner in value[:1]]
        return f"{value[:WIDEST]}…" if isinstance(value, str) and len(value) > WIDEST else value

    return json.dumps(shorter(json.loads(text)), indent=2, ensure_ascii=False)


def first_line(text: str) -> str:
    return text.splitlines()[0]


def with_results(text: str) -> str:
    """A JUnit text without the test cases that have nothing to tell."""
    return re.sub(r"\n *<testcase [^>]*/>", "", text)


ABOUT: Final[Mapping[str, About]] = {
    "text": About(
        "a person at a terminal",
        "shown, and marked",
        "Colours on a terminal, unless `NO_COLOR` is set. `--verbose` adds the load plan.",
        "text",
        str,
    ),
    "json": About(
        "a program: the contract",
        "listed",
        """
One object, `schema_version` 1, the same keys whatever happens; `dflash-audit schema` prints its JSON Schema
(2020-12). Keys are only ever added within a version. The sample is laid out, and its lists are cut to their
first entry.
""",
        "json",
        cut,
    ),
    "jsonl": About(
        "many audits in one file",
        "listed",
        """
The same object on a line of its own: a line a source, so that what is known of a draft stays together, and a
file can be appended to and read while it grows. `jq` picks findings out of it:
`jq -c '.source.id as $id | .findings[] | [$id, .rule, .subject]'`.
""",
    ),
    "markdown": About(
        "a model card, a discussion, a comment",
        "folded away",
        "At most 60,000 characters, which fit into a comment on GitHub; what is left out is counted.",
        "markdown",
        str,
    ),
    "github": About(
        "a step of GitHub Actions",
        "left out",
        """
Workflow commands, which become annotations. GitHub shows ten errors, ten warnings and ten notices of a step,
so of more the tenth says how many are left out. Where `GITHUB_STEP_SUMMARY` is set, the Markdown above is
appended to the job's summary, unless the file has no room for it in the 1 MiB that GitHub takes. The sample
is the first line of several.
""",
        "text",
        first_line,
    ),
    "sarif": About(
        "code scanning, editors",
        "`informational`",
        """
SARIF 2.1.0. A rule that found something brings its page as help. What is known or ignored
([gate.md](gate.md)) is there with a suppression. The sample's lists are cut to their first entry, and its
texts are cut.
""",
        "json",
        cut,
    ),
    "junit": About(
        "any CI system's view of tests",
        "left out",
        """
A suite for each deciding engine and one for what holds for all; a test case for each rule. A rule fails where
`--fail-on` says so, is skipped where it did not look (under `--strict` it fails), and else keeps what it
found, and what is known or ignored, in its output. The sample leaves out the cases that found nothing.
""",
        "xml",
        with_results,
    ),
    "gitlab": About(
        "GitLab's merge requests",
        "left out",
        """
A Code Quality report: errors are `critical`, warnings `minor`, notes `info`. A source that could not be read
is a `blocker`, an engine that was not judged a `minor` entry, under `--strict` a `critical` one. What is
known or ignored is left out. The sample is cut to its first entry.
""",
        "json",
        cut,
    ),
    "html": About(
        "a person who looks rather than reads",
        "shown, and marked",
        """
One file with nothing to load: a map of the modules with a cell for each parameter, shard and lost tensor, the
engines side by side, the findings linked to their cells. See [html-report.md](html-report.md).
""",
    ),
}


def main() -> None:
    """Print the page."""
    rows = [f"| `{name}` | {ABOUT[name].purpose} | {ABOUT[name].uncounted} |" for name in FORMATS]
    parts = [HEAD + "\n".join(rows), f"{ASIDE}`{DRAFT}` with `--engine {ENGINE}`."]
    parts += [section(name, ABOUT[name]) for name in FORMATS]
    print("\n\n".join(part.strip() for part in parts))


def section(name: str, about: About) -> str:
    """A format's heading, what there is to say of it, and its sample."""
    shown = f"`````{about.language}\n{about.sample(written(name))}\n`````" if about.sample else ""
    return f"## {name}\n\n{about.more.strip()}\n\n{shown}"


def written(name: str) -> str:
    os.chdir(ROOT)  # paths are as they would be for one who follows the README
    for variable in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        os.environ.pop(variable, None)
    return render(name, audit(Request(DRAFT, frozenset({ENGINE}))), Screen(90))


if __name__ == "__main__":
    main()
