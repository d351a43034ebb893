"""Names that try to break out of a format: each format has them as text, and nothing of them as markup."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from formats.reports import HOSTILE, audited, hostile, unreadable, written
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from materialize import materialize, write_zeros
from parity.case import FIXTURES

from dflash_audit.formats import FORMATS
from dflash_audit.formats.inert_markdown import code, prose

REPORT = hostile()
RUNNER_COMMAND = re.compile(r"^\s*::|##\w*\[")
"""What a CI system would do something for: GitHub's new and old commands, Azure's, TeamCity's."""

COMMAND = re.compile(r"::(error|warning|notice) title=[^:,]*(?:,file=[^:,]*)?::(?:(?!##\w*\[).)*")
"""A command that is this audit's own."""

OWN_HTML = re.compile(r"<details><summary>[\w .,:-]+</summary>|</details>")


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "github"])
@pytest.mark.parametrize("width", [20, 33, 100])
def test_no_line_is_a_command_to_a_ci_system(name: str, width: int) -> None:
    for report in (REPORT, unreadable()):
        lines = written(name, report, width).split("\n")
        assert [line for line in lines if RUNNER_COMMAND.search(line)] == []


@pytest.mark.parametrize("name", FORMATS)
def test_every_line_is_printable(name: str) -> None:
    text = written(name, REPORT)
    assert all(line.isprintable() for line in text.split("\n"))
    text.encode("utf-8")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Drafts with hostile names: of tensors and of what is to stay dense; and of the class."""
    case = FIXTURES / "cases" / "ct-dflash2-w8a16_q_only"
    names = [name for name in HOSTILE if name not in ("\ud800", "")]
    tensors = json.loads((case / "tensors.json").read_text())
    found = []
    for architecture in ("DFlash2DraftModel", *names[:8]):
        source = materialize(case, tmp_path_factory.mktemp("hostile"))
        config = json.loads((source / "config.json").read_text())
        config["quantization_config"]["ignore"] += [name for name in names if not name.startswith("re:")]
        config["architectures"] = [architecture]
        (source / "config.json").write_text(json.dumps(config))
        more = [*names, *(f"layers.0.{name}.weight" for name in names)]
        write_zeros(source / "model.safetensors", {**tensors, **{name: ("BF16", [2]) for name in more}})
        found.append(source)
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_a_checkpoint_with_such_names(name: str, checkpoints: list[Path]) -> None:
    for source in checkpoints:
        report = audited(source)
        assert any("pwned" in subject for finding in report.findings for subject in finding.subjects) or (
            report.runs[0].model_class is None
        )
        lines = written(name, report, 40).split("\n")
        assert all(line.isprintable() for line in lines)
        if name == "github":
            assert all(COMMAND.fullmatch(line) for line in lines)
        else:
            assert [line for line in lines if RUNNER_COMMAND.search(line)] == []
        if name == "markdown":
            assert prone(tokens("\n".join(lines))) == []


def test_json_has_the_names_as_they_are() -> None:
    said = json.loads(written("json", REPORT))
    assert [finding["subject"] for finding in said["findings"]] == [*HOSTILE, *HOSTILE, "last"]


def test_github_has_one_command_a_line_and_ten_of_a_type() -> None:
    lines = written("github", REPORT).split("\n")
    parsed = [COMMAND.fullmatch(line) for line in lines]
    commands = [match[1] for match in parsed if match]
    assert len(commands) == len(lines)
    assert commands == sorted(commands, key=("error", "warning", "notice").index)
    assert {command: commands.count(command) for command in commands} == {
        "error": 10, "warning": 10, "notice": 10
    }  # fmt: skip
    (told,) = [line for line in lines if "%250A::error::pwned: %250A::error::pwned It says" in line]
    assert re.findall(r"%..", told.partition("::%250A")[2]).count("%0A") == 1


def test_junit_is_one_document() -> None:
    root = ET.fromstring(written("junit", REPORT))
    told = "".join(root.itertext()) + "".join(f["message"] for f in (e.attrib for e in root.iter("failure")))
    assert "<script>alert(1)</script>" in told
    assert "]]>" in told
    assert {element.tag for element in root.iter()} == {
        "testsuites", "testsuite", "testcase", "failure", "system-out"
    }  # fmt: skip


def test_gitlab_has_a_fingerprint_for_each() -> None:
    said = json.loads(written("gitlab", REPORT))
    counted = [finding for finding in REPORT.findings if REPORT.counts_in_summary(finding)]
    assert len({entry["fingerprint"] for entry in said}) == len(said) == len(counted)


def test_sarif_has_neither_links_nor_placeholders() -> None:
    (run,) = json.loads(written("sarif", REPORT))["runs"]
    texts = [result["message"]["text"] for result in run["results"]]
    assert len(texts) == len(REPORT.findings)
    assert any("{{0}}" in text for text in texts)
    assert not any(re.search(r"\]\(|(?<!\{)\{\d+\}", text) for text in texts)


def tokens(text: str) -> list[Token]:
    """What a reader of GitHub's Markdown makes of a text, its inline parts too."""
    parsed = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    return [inner for token in parsed for inner in (token, *(token.children or []))]


def prone(found: list[Token]) -> list[str]:
    """What of it is more than words, code and the report's own frame."""
    bad = [t.type for t in found if t.type in ("link_open", "image", "html_inline", "s_open", "hr", "fence")]
    bad += [t.content for t in found if t.type == "html_block" and not OWN_HTML.fullmatch(t.content.strip())]
    text = [token.content for token in found if token.type == "text"]
    return bad + [
        t
        for t in text
        if re.search(r"[@#<>|`]|://|www\.|\]\(|GH-\d|\b(?=\w*\d)(?=\w*[a-f])[0-9a-f]{7,40}\b", t)
    ]


def test_markdown_is_words_and_code() -> None:
    found = tokens(written("markdown", REPORT))
    assert prone(found) == []
    rows = [t for t in found if t.type in ("tr_open", "td_open", "th_open")]
    assert [t.type for t in rows].count("tr_open") * 4 == len(rows)
    assert next(t.tag for t in found if t.type == "heading_open") == "h2"
    assert "script" in "".join(t.content for t in found if t.type == "code_inline")


@given(st.text(st.sampled_from("ab1`|\\*_[]()<>@#:/.-+!~=&;\"' \n\x1b") | st.characters(), max_size=60))
def test_any_name_in_markdown(name: str) -> None:
    text = f"- {code(name)}, {code(name)}\\\n  {prose(name)}\\\n  **Fix:** {prose(f'Mend ({name}): {name}.')}"
    found = tokens(text)
    assert prone(found) == []
    kinds = [token.type for token in found]
    assert kinds[:4] == ["bullet_list_open", "list_item_open", "paragraph_open", "inline"]
    assert kinds.count("bullet_list_open") + kinds.count("ordered_list_open") == 1
    assert kinds.count("strong_open") == 1
    assert kinds.count("em_open") == 0


@pytest.mark.parametrize(
    ("sentence", "markdown"),
    [
        ("The engine builds fc.weight.", "The engine builds `fc.weight`."),
        ('Add "re:(.*\\\\.)?qkv_proj$" to ignore.', 'Add `"re:(.*\\\\.)?qkv_proj$"` to ignore.'),
        ("3 tensors (I32, BF16) of 33,796 numbers", "3 tensors (`I32`, `BF16`) of 33,796 numbers"),
        ("the server's --tp 2 is the draft's", "the server's `--tp` 2 is the draft's"),
        ("@everyone: see https://evil.example", "`@everyone`: see `https://evil.example`"),
        ("a `tick` and `` two", "a `` `tick` `` and ``` `` ``` two"),
        ("1. first", "1\\. first"),
        ("fc.weight [128, 256] is 2: [1, 3].", "`fc.weight [128, 256]` is 2: `[1, 3]`."),
        ("the shape [128, 16], [256, 16] is", "the shape `[128, 16]`, `[256, 16]` is"),
        ("an open [a, b c", "an open `[a`, b c"),
    ],
)
def test_prose(sentence: str, markdown: str) -> None:
    assert prose(sentence) == markdown
