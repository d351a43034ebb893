"""Annotations and the job's summary, as a step of a workflow makes them."""

import re
from pathlib import Path

import pytest
from formats.reports import ALL, SEED, of, unreadable, written
from materialize import materialize
from test_cli import FIXTURES, name_class, run

from dflash_audit.finding import Finding
from dflash_audit.formats.github import MOST_OF_SUMMARY, add_summary


@pytest.fixture(autouse=True)
def outside_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)


def found(severity: str, number: int, engine: str | None = "sglang-next") -> Finding:
    assert severity in ("error", "warning", "note")
    return Finding("dropped-tensor", severity, engine, f"{severity}.{number}", "It goes nowhere.")  # type: ignore[arg-type]


def test_of_more_than_ten_the_last_says_how_many() -> None:
    report = of(
        *(found(severity, n) for n in range(13) for severity in ("note", "error")), found("warning", 0)
    )
    lines = written("github", report).split("\n")
    kinds = [line.split()[0] for line in lines]
    assert kinds == ["::error"] * 10 + ["::warning"] + ["::notice"] * 10
    assert lines[9] == "::error title=4 errors left out::The job's summary has them all."
    assert lines[20] == "::notice title=4 notes left out::The job's summary has them all."
    assert "error.8: " in lines[8]


def test_what_does_not_count_makes_none_and_what_two_share_makes_one() -> None:
    done = run(str(SEED), "--format", "github", cwd=FIXTURES)
    (line,) = done.stdout.splitlines()
    assert line.startswith(
        "::warning title=engines-disagree,file=seed-w8a16/config.json::sglang-0.5.23, vllm-0.33.0: "
    )
    shared = of(found("error", 0, "sglang-0.5.23"), found("error", 0))
    assert (
        written("github", shared).count("::error title=dropped-tensor on sglang-0.5.23 and sglang-next") == 1
    )


def test_files_are_named_as_the_checkout_has_them(tmp_path: Path) -> None:
    words = [str(SEED / "model.safetensors"), "--engine", "sglang-0.5.23", "--format", "github"]
    root = str(FIXTURES.parent)
    inside = run(*words, cwd=tmp_path, GITHUB_WORKSPACE=root).stdout
    files = re.findall(r",file=([^:]*)::", inside)
    assert {*files} == {f"fixtures/seed-w8a16/{name}" for name in ("config.json", "model.safetensors")}
    assert ",file=" not in run(*words, cwd=tmp_path).stdout


def test_a_folder_whose_name_would_end_a_property(tmp_path: Path) -> None:
    materialize(FIXTURES / "cases" / "act-gelu", tmp_path / "a:b,c%d")
    (line, *_) = run("a:b,c%d", "--format", "github", cwd=tmp_path).stdout.splitlines()
    assert ",file=a%3Ab%2Cc%25d/config.json::" in line


def test_what_keeps_from_a_verdict_is_an_annotation(tmp_path: Path) -> None:
    assert written("github", unreadable()) == "::error title=dflash-audit::nothing: is not there"
    source = materialize(FIXTURES / "cases" / "dense-dspark", tmp_path)
    name_class(source, "Lfm2DSparkDraftModel")
    assert "::warning title=not judged on sglang-next::" in run(str(source), "--format", "github").stdout


def test_the_summary_is_appended(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    done = run(str(SEED), "--format", "github", GITHUB_STEP_SUMMARY=str(file))
    assert done.returncode == 0
    assert file.read_text() == "before\n" + run(str(SEED), "--format", "markdown").stdout + "\n"
    run(str(SEED), GITHUB_STEP_SUMMARY=str(file))
    assert file.read_text().count("## DFlash draft audit") == 1


def test_a_summary_without_room(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_bytes(b"x" * (MOST_OF_SUMMARY - 100))
    add_summary(of(), str(file))
    assert b"no room left" in file.read_bytes()[-100:]
    add_summary(of(), str(file))
    assert file.stat().st_size <= MOST_OF_SUMMARY


def test_a_summary_that_cannot_be_written(tmp_path: Path) -> None:
    done = run(str(SEED), "--format", "github", GITHUB_STEP_SUMMARY=str(tmp_path / "no" / "summary.md"))
    assert done.returncode == 3
    assert done.stderr.startswith(f"dflash-audit: {tmp_path}/no/summary.md: cannot be written: ")
    assert "::warning title=engines-disagree" in done.stdout
    assert "::error title=dflash-audit::" in done.stdout


def test_every_engine_that_decides() -> None:
    words = [word for name in sorted(ALL) for word in ("--engine", name)]
    lines = run(str(SEED), *words, "--format", "github").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["::error"] * 5 + ["::warning"] * 2
