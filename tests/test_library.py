"""The audit as a library: the report of the command line, as objects, and nothing printed."""

import inspect
import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import pytest
from materialize import materialize
from report_schema import valid
from test_cli import FIXTURES, SEED, run

import dflash_audit
from dflash_audit import EngineRun, Finding, Report, Skip, Unreadable, WrongUsage, audit, render, to_json
from dflash_audit.cli.audit import command
from dflash_audit.warmup.options import Options

PAGE = (FIXTURES.parent / "docs" / "library.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
RELEASE = "sglang-0.5.23"

ANSWERS = {"engine": "engines", "against": "warmup"}
"""Option of the command -> the argument that it goes by here, where that is another."""

PRINTS = {"write_baseline", "formats", "file", "as_json", "verbose"}
"""What the command has for how a report is written, and to where."""


def test_every_option_that_changes_a_report_is_an_argument() -> None:
    options = {*inspect.signature(command).parameters} - PRINTS - {*inspect.signature(Options).parameters}
    assert {ANSWERS.get(name, name) for name in options} == {*inspect.signature(audit).parameters}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ([], {}),
        (["--engine", "all"], {"engines": "all"}),
        (["--engine", RELEASE, "--engine", "sglang-next"], {"engines": [RELEASE, "sglang-next"]}),
        (["--tp", "3", "--gpu", "T4"], {"tp": 3, "gpu": "T4"}),
        (["--tp", "1,2,3"], {"tp": (1, 2, 3)}),
        (["--fail-on", "warning"], {"fail_on": "warning"}),
        (["--quantization", "fp8"], {"quantization": "fp8"}),
        (
            ["--engine", RELEASE, "--select", "dropped-tensor,lossy-cast", "--ignore", "dropped-tensor:fc.*"],
            {
                "engines": RELEASE,
                "select": "dropped-tensor,lossy-cast",
                "ignore": ["dropped-tensor:fc.*"],
            },
        ),
    ],
)  # fmt: skip
def test_the_report_is_that_of_the_command(words: list[str], arguments: dict[str, Any]) -> None:
    report = audit(str(SEED), **arguments)
    printed = run(str(SEED), *words, "--json")
    assert to_json(report) == valid(json.loads(printed.stdout))
    assert report.exit_code == printed.returncode


def test_a_baseline_and_a_strict_gate(tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    assert run(str(SEED), "--engine", RELEASE, "--write-baseline", str(known)).returncode == 0
    assert audit(str(SEED), engines=RELEASE).exit_code == 1
    assert audit(str(SEED), engines=RELEASE, baseline=known).exit_code == 0
    source = materialize(FIXTURES / "cases" / "dense-dspark", tmp_path)
    config = source / "config.json"
    config.write_text(
        json.dumps({**json.loads(config.read_text()), "architectures": ["Lfm2DSparkDraftModel"]})
    )
    assert [audit(source, strict=strict).exit_code for strict in (False, True)] == [0, 1]


def test_what_cannot_be_read_is_an_error_of_the_report(tmp_path: Path) -> None:
    report = audit(tmp_path / "nothing")
    assert isinstance(report.error, Unreadable)
    assert (report.error.kind, report.exit_code, report.runs) == ("no-such-source", 3, ())


def test_a_path_is_never_a_repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = audit(Path("org/name"))
    assert report.error is not None
    assert (report.origin.kind, report.error.kind) == ("local", "no-such-source")
    assert audit(Path("hf://org/name")).origin.kind == "local"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"engines": "sglang-nxt"}, "Did you mean sglang-next?"),
        ({"engines": []}, "engines names none"),
        ({"engines": "sglang@installed", "tp": 2}, "sglang"),
        ({"gpu": "h-200"}, "Did you mean h200?"),
        ({"quantization": "fp_8"}, "Did you mean fp8?"),
        ({"attention_backend": "trtllm_mla"}, "Did you mean trtllm_mha?"),
        ({"fail_on": "eror"}, "Did you mean error?"),
        ({"fail_on": "\n::error::\x1b[31m"}, r"\n::error::\x1b[31m is no severity."),
        ({"select": ["droped-tensor"]}, "Did you mean dropped-tensor?"),
        ({"select": []}, "select names no rule"),
        ({"ignore": "dropped-tensor:"}, "names no subject"),
        ({"baseline": "no-such.json"}, "no-such.json: cannot be read"),
        ({"tp": 0}, "at least one rank"),
        ({"tp": (1, 0)}, "at least one rank"),
        ({"tp": ()}, "tp names no number"),
        ({"tp": [2, 1, 2]}, "tp names 2 twice"),
        ({"tp": "2"}, "tp is '2'"),
        ({"tp": 2.0}, "tp is 2.0"),
        ({"tp": [True]}, "tp is True"),
        ({"tp": [1, 2], "engines": "sglang-next", "warmup": Options()}, "one rank"),
        ({"warmup": Options(), "tp": 2}, "one rank"),
        ({"revision": ""}, "it is empty"),
    ],
)
def test_what_is_asked_wrongly_is_raised_before_anything_is_read(
    arguments: dict[str, Any], told: str
) -> None:
    with pytest.raises(WrongUsage, match=re.escape(told)) as caught:
        audit("/nothing/is/here", **arguments)
    assert isinstance(caught.value, ValueError)


def test_a_format_that_does_not_exist() -> None:
    report = audit(SEED)
    assert render(report, "MARKDOWN") + "\n" == run(str(SEED), "--format", "markdown").stdout
    with pytest.raises(WrongUsage, match="Did you mean markdown"):
        render(report, "markdwn")


def test_nothing_is_printed_and_no_settings_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".dflash-audit.toml").write_text('fail-on = "never"\n')
    assert run(str(SEED), "--engine", RELEASE, cwd=tmp_path).returncode == 0
    assert audit(SEED, engines=RELEASE).exit_code == 1
    assert audit(tmp_path / "nothing").exit_code == 3
    assert capfd.readouterr() == ("", "")


def test_the_name_is_the_functions_whatever_was_imported() -> None:
    code = (
        "import pkgutil, dflash_audit, dflash_audit.cli.audit, dflash_audit.auditing;"
        "from dflash_audit import audit;"
        "assert callable(audit) and audit is dflash_audit.audit;"
        "modules = {m.name for m in pkgutil.iter_modules(dflash_audit.__path__)};"
        "assert modules.isdisjoint(dflash_audit.__all__)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_alone_imports_nothing_of_it() -> None:
    code = (
        "import sys, dflash_audit;"
        "assert set(dflash_audit.__all__) <= set(dir(dflash_audit));"
        "print([m for m in sys.modules if m.startswith('dflash_audit.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
    assert {name for name in dflash_audit.__all__ if getattr(dflash_audit, name) is None} == set()
    with pytest.raises(AttributeError, match="no attribute 'adit'"):
        _ = dflash_audit.adit


def test_threads_come_to_the_same_reports(tmp_path: Path) -> None:
    names = ("dense-dflash1", "dense-dspark", "modelopt-nvfp4-hfquant", "dense-dflash2")
    drafts = [materialize(FIXTURES / "cases" / name, tmp_path / name) for name in names] * 6
    alone = [to_json(audit(draft)) for draft in drafts]
    with ThreadPoolExecutor(8) as pool:
        assert [to_json(report) for report in pool.map(audit, drafts)] == alone


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_pages_examples_run(number: int, tmp_path: Path) -> None:
    for name in ("draft", "other-draft"):
        shutil.copytree(SEED, tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLES[number]], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    expected = {
        1: "sglang-0.5.19 fail DFlash2DraftModel",
        3: "sglang-nxt is no engine. Did you mean sglang-next?",
    }
    assert done.stdout.startswith(expected.get(number, ""))
    assert bool(done.stdout) == (number in expected)


def test_the_page_names_every_argument_and_every_attribute() -> None:
    rows = dict(re.findall(r"^\| (`[^|]*`) \| (.*) \|$", PAGE, re.MULTILINE))
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named >= {*inspect.signature(audit).parameters}
    for kind in (Report, EngineRun, Finding, Skip):
        told = re.findall(r"`(\w+)(?:\([a-z]+\))?`", rows[f"`{kind.__name__}`"])
        slots = {*getattr(kind, "__slots__", ())}
        assert {name for name in told if name not in slots and not hasattr(kind, name)} == set()
    defaults = {n: p.default for n, p in inspect.signature(audit).parameters.items()}
    assert (defaults["engines"], defaults["gpu"], defaults["tp"]) == ("sglang-next", "h200", 1)
    assert "error" in get_args(inspect.signature(audit).parameters["fail_on"].annotation)


def test_a_strict_type_checker_sees_the_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="of the extra `lint`")
    (tmp_path / "good.py").write_text("\n".join(EXAMPLES))
    (tmp_path / "bad.py").write_text(
        "from dflash_audit import audit\n"
        'audit("draft", tp="2")\n'
        'audit("draft", fail_on="sometimes")\n'
        'audit("draft").exit_cod\n'
        "reveal_type(audit('draft').findings[0].severity)\n"
    )
    mypy = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file", ""]
    root = str(FIXTURES.parent)
    done = subprocess.run(
        [*mypy, "good.py", "bad.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={"MYPYPATH": root, "PATH": ""},
    )  # fmt: skip
    lines = [line.partition(": ")[0] for line in done.stdout.splitlines() if ": error:" in line]
    assert lines == ["bad.py:2", "bad.py:3", "bad.py:4"], done.stdout + done.stderr
    assert "Literal['error'" in done.stdout
