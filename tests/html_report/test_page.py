"""The file as such: what is in it without a browser, and that nothing in it comes to life."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_audit.engines import ENGINES
from dflash_audit.errors import Unreadable
from dflash_audit.formats import render
from dflash_audit.formats.html.data import embedded
from dflash_audit.formats.html.markup import element
from dflash_audit.formats.html.states import STATES
from dflash_audit.formats.screen import Screen
from dflash_audit.report import Report
from dflash_audit.sources.checkpoint import Origin
from dflash_audit.warmup.result_json import from_dict

Audited = Callable[[str], Report]
FIXTURES = Path(__file__).parents[2] / "fixtures"
HOSTILE = (
    "</script><!--<script>\u2028\u202e\x1b[31m\x00'\"`|\n::error::[bold]&lt;<img src=x onerror=alert(1)>"
)


class Parsed(HTMLParser):
    """The elements of a page, and the text in each kind of them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._inside: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside.append(tag)
        if tag not in ("meta", "link", "input", "br"):
            self.texts.setdefault(tag, []).append("")
        else:
            self._inside.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._inside.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[self._inside[-1]][-1] += data

    def text(self) -> str:
        return " ".join(
            text for tag, texts in self.texts.items() if tag not in ("script", "style") for text in texts
        )


@pytest.fixture(scope="module")
def seed(audited: Audited) -> str:
    return render("html", audited("seed-w8a16"), Screen())


def test_without_a_script_the_verdicts_the_findings_and_a_table_are_there(seed: str) -> None:
    text = Parsed(seed).text()
    for words in ("does not serve", "sglang-0.5.23", "dropped-tensor", "--speculative-algorithm DFLASH"):
        assert words in text
    rows = [row for row in re.findall(r"<tr>(.*?)</tr>", seed) if "dropped" in row]
    assert any("layers.0-1.self_attn.q_proj.weight" in row and "sglang-0.5.23" in row for row in rows)
    assert '<details id="table" open="">' in seed


def test_the_policy_lets_in_its_own_script_and_style_alone(seed: str) -> None:
    parsed = Parsed(seed)
    policies = [
        a["content"] for tag, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy"
    ]
    (policy,) = policies
    assert policy is not None and policy.startswith("default-src 'none';") and "unsafe" not in policy

    def hashed(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    data, script = parsed.texts["script"]
    assert f"script-src 'sha256-{hashed(script)}'" in policy
    assert f"style-src 'sha256-{hashed(parsed.texts['style'][0])}'" in policy
    json.loads(data)


def test_nothing_is_loaded_and_nothing_runs_from_an_attribute(seed: str) -> None:
    for tag, attributes in Parsed(seed).elements:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        for name in ("src", "href", "action", "srcset"):
            assert attributes.get(name) is None or str(attributes[name]).startswith("data:image/svg+xml,"), (
                tag
            )
    css = Parsed(seed).texts["style"][0]
    assert "url(" not in css and "@import" not in css


def test_the_page_is_ascii_for_whatever_encoding_it_is_written_in(seed: str) -> None:
    assert seed.isascii()


def test_every_state_of_the_legend_has_its_looks(seed: str) -> None:
    css = Parsed(seed).texts["style"][0]
    assert [state.id for state in STATES if f".{state.id} {{" not in css and f".{state.id}," not in css] == []
    letters = [state.letter for state in STATES]
    assert len(set(letters)) == len(letters)


def test_hostile_names_are_text(with_tensors: Callable[..., Report]) -> None:
    report = with_tensors(
        "seed-bf16", {f"{HOSTILE}.weight": ("BF16", [2, 2]), f"layers.0.{HOSTILE}": ("F32", [1])}
    )
    page = render("html", report, Screen())
    parsed = Parsed(page)
    tags = [tag for tag, _ in parsed.elements]
    assert tags.count("script") == 2 and "img" not in tags
    assert page.count("<!--") == 0 and "\\u202e" in page
    assert not any(c in page for c in ("\x1b", "\x00", "\u2028"))
    names = [
        c["name"]
        for e in json.loads(parsed.texts["script"][0])["engines"]
        for m in e["modules"]
        for c in m["cells"]
    ]
    assert sum("onerror=alert(1)>" in name for name in names) == 2 * len(ENGINES)


@given(
    st.recursive(
        st.text() | st.just(HOSTILE), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_data_is_inert_in_a_script_and_comes_back(value: Any) -> None:
    text = embedded(value)
    assert text.isascii() and not set("<>&") & set(text)
    assert json.loads(text) == value


@given(st.text())
def test_an_element_holds_its_text_and_nothing_else(text: str) -> None:
    parsed = Parsed(element("p", element("b", text), title=text))
    assert [tag for tag, _ in parsed.elements] == ["p", "b"]


def test_a_source_that_cannot_be_read_has_a_page_too() -> None:
    report = Report(
        Origin("local", "nowhere"), error=Unreadable("no-such-source", "nowhere", "no such folder")
    )
    parsed = Parsed(render("html", report, Screen()))
    assert "nowhere: no such folder" in parsed.text()
    assert "script" not in parsed.texts


def with_warmup(report: Report, case: str) -> Report:
    said = json.loads((FIXTURES / "rules" / case / "warmup.json").read_text())
    return replace(report, warmups=(from_dict(said),))


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("warmup-died/bad-assert", "assert in the stage"),
        ("warmup-unfilled/bad-fused-and-fc", "NaN or infinite"),
        ("warmup-unfilled/good-filled", "finite, up to"),
    ],
)
def test_a_warm_up_is_a_line_of_stages(case: str, words: str, audited: Audited) -> None:
    page = render("html", with_warmup(audited("seed-w8a16"), case), Screen())
    stages = re.findall(r'<li class="stage (\w+)"', page)
    said = json.loads((FIXTURES / "rules" / case / "warmup.json").read_text())
    kinds = ["finite" if stage["finite"] else "nonfinite" for stage in said["stages"]]
    assert stages == [*kinds, *(["died"] if said["death"] else [])]
    assert words in Parsed(page).text()


def test_the_written_page_says_what_every_state_means() -> None:
    told = (Path(__file__).parents[2] / "docs" / "html-report.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| ?([A-Z]?) ?\| [^|]+ \| ([^|]+) \|$", told, re.MULTILINE)
    assert rows == [(state.word, state.letter, state.meaning) for state in STATES]


def test_the_scripts_make_text_and_no_markup() -> None:
    folder = Path(__file__).parents[2] / "dflash_audit" / "formats" / "html" / "js"
    sinks = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|setTimeout"
    )
    assert [path.name for path in folder.glob("*.js") if sinks.search(path.read_text())] == []
