"""What fails an audit is for whoever runs it to say; what an engine does is not."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from materialize import materialize
from report_schema import valid
from test_cli import FIXTURES, SEED, name_class, run

RELEASE = ("--engine", "sglang-0.5.23")
BOTH_LAYERS = "layers.0-1.self_attn.{k_proj,q_proj,v_proj}.weight"


def report(*words: str, code: int) -> dict[str, Any]:
    done = run(str(SEED), *RELEASE, *words, "--json")
    assert done.returncode == code, done.stderr
    said: dict[str, Any] = valid(json.loads(done.stdout))
    assert said["summary"]["exit_code"] == code
    return said


def found(said: dict[str, Any], ignored: bool = False) -> list[tuple[str, str]]:
    """Rule and subject of what decides, in their order."""
    decisive = [f for f in said["findings"] if f["engine"] in (None, "sglang-0.5.23")]
    return [(f["rule"], f["subject"]) for f in decisive if f["ignored"] == ignored]


@pytest.mark.parametrize(
    ("engine", "fail_on", "code"),
    [
        ("sglang-0.5.23", "never", 0),
        ("sglang-0.5.23", "NOTE", 1),
        ("sglang-next", "error", 0),
        ("sglang-next", "warning", 1),
        ("sglang-next", "never", 0),
    ],
)
def test_fail_on(engine: str, fail_on: str, code: int) -> None:
    assert run(str(SEED), "--engine", engine, "--fail-on", fail_on).returncode == code


def test_what_could_not_be_read_fails_whatever_is_let_pass(tmp_path: Path) -> None:
    assert run(str(tmp_path / "none"), "--fail-on", "never").returncode == 3


def test_an_ignored_rule_moves_no_exit_code_and_no_verdict() -> None:
    said = report("--ignore", "dropped-tensor", "--ignore", "unfilled-parameter", code=0)
    assert found(said) == [("dead-ignore-entry", "re:.*self_attn\\.(q|k|v)_proj$")]
    assert said["summary"] == {
        "errors": 0, "warnings": 1, "notes": 0, "exit_code": 0, "known": 0, "ignored": 4,
    }  # fmt: skip
    assert said["engines"][0]["verdict"] == "fail"


def test_a_folded_finding_loses_the_subjects_that_are_ignored() -> None:
    said = report("--ignore", "dropped-tensor:layers.0.*", code=1)
    kept = ("dropped-tensor", "layers.1.self_attn.{k_proj,q_proj,v_proj}.weight")
    assert kept in found(said)
    assert found(said, ignored=True) == [
        ("dropped-tensor", "layers.0.self_attn.{k_proj,q_proj,v_proj}.weight")
    ]
    left = next(f for f in said["findings"] if (f["rule"], f["subject"]) == kept)
    assert left["subjects"] == [f"layers.1.self_attn.{name}_proj.weight" for name in "kqv"]
    assert left["count"] == 3
    assert left["message"].endswith("(Of 6 subjects: 3 left, 3 ignored.)")


@pytest.mark.parametrize("glob", ["layers.?.self_attn.*", BOTH_LAYERS])
def test_a_finding_is_gone_when_no_subject_is_left(glob: str) -> None:
    words = ["--ignore", f"dropped-tensor:{glob}", *RELEASE]
    shown = run(str(SEED), *words).stdout
    assert f"error dropped-tensor\n    {BOTH_LAYERS}" not in shown
    assert "3 errors, 1 warning, 0 notes that count (sglang-0.5.23); 1 ignored" in shown
    said = report("--ignore", f"dropped-tensor:{glob}", code=1)
    assert found(said, ignored=True) == [("dropped-tensor", BOTH_LAYERS)]


def test_a_subject_with_brackets_is_named_word_for_word() -> None:
    from dflash_audit.finding import Finding
    from dflash_audit.gate.controls import Ignore

    finding = Finding("unfilled-parameter", "error", None, "all", "m", None, ("w[q]", "w[k]", "wq"))
    taken = [name for name in finding.subjects if Ignore("unfilled-parameter", "w[q]").takes(finding, name)]
    assert taken == ["w[q]", "wq"]


def test_select_goes_by_these_rules_alone() -> None:
    said = report("--select", "dead-ignore-entry, tap-order", code=0)
    assert found(said) == [("dead-ignore-entry", "re:.*self_attn\\.(q|k|v)_proj$")]
    both = report("--select", "dead-ignore-entry", "--select", "unfilled-parameter", code=1)
    assert {rule for rule, _ in found(both)} == {"dead-ignore-entry", "unfilled-parameter"}


def test_the_cause_of_a_verdict_is_what_counts_if_anything_does() -> None:
    def cause(*rules: str) -> str:
        words = [word for rule in rules for word in ("--ignore", rule)]
        table = run(str(SEED), *RELEASE, *words, "--format", "markdown").stdout
        return next(line for line in table.split("\n") if line.startswith("| **sglang-0.5.23**"))

    assert "error `unfilled-parameter` |" in cause("dropped-tensor")
    assert "error `dropped-tensor` (ignored) |" in cause("dropped-tensor", "unfilled-parameter")


def test_a_draft_whose_errors_are_ignored_is_not_offered_to_be_served() -> None:
    words = ["--ignore", "dropped-tensor", "--ignore", "unfilled-parameter", *RELEASE]
    for name in ("text", "markdown", "html"):
        assert "Serve it" not in run(str(SEED), *words, "--format", name).stdout
        assert "serve it on" not in run(str(SEED), *words, "--format", name).stdout
    assert "Serve it on sglang-next" in run(str(SEED)).stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--ignore", "droped-tensor"], "Did you mean dropped-tensor?"),
        (["--ignore", "dropped-tensor:"], "names no subject"),
        (["--select", "dropped-tensor,tap-ordr"], "Did you mean tap-order?"),
        (["--select", ""], "is no rule"),
        (["--fail-on", "nver"], "Did you mean never?"),
        (["--write-baseline", "a", "-o", "./a"], "name a file for each"),
    ],
)
def test_what_is_wrong_is_a_usage_error(words: list[str], says: str) -> None:
    done = run(str(SEED), *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


@pytest.fixture
def skipped(tmp_path: Path) -> str:
    """A draft of a class that no profile replays."""
    source = materialize(FIXTURES / "cases" / "dense-dspark", tmp_path / "skipped")
    name_class(source, "Lfm2DSparkDraftModel")
    return str(source)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 0),
        (["--strict"], 1),
        (["--strict", "--no-strict"], 0),
        (["--strict", "--fail-on", "never"], 0),
        (["--strict", "--select", "odd-layout"], 0),
        (["--strict", "--select", "odd-layout,tap-order"], 1),
        (["--strict", "--ignore", "tap-order"], 1),
    ],
)
def test_strict_fails_what_was_not_looked_at(words: list[str], code: int, skipped: str) -> None:
    done = run(skipped, *words, "--json")
    said = valid(json.loads(done.stdout))
    assert done.returncode == said["summary"]["exit_code"] == code
    failing = [skip["reason"] for skip in said["skips"] if skip["failing"]]
    assert bool(failing) == (code == 1)
    # An engine that does not decide fails nothing.
    assert all(reason.startswith("sglang-next: ") for reason in failing)


def test_every_format_says_why_strict_failed(skipped: str) -> None:
    def written(name: str, *words: str) -> str:
        return run(skipped, "--format", name, *words).stdout

    assert "skips that --strict fails" in written("text", "--strict")
    assert "skips that --strict fails" in written("markdown", "--strict")
    assert "::error " not in written("github")
    assert "::error " in written("github", "--strict")
    assert {entry["severity"] for entry in json.loads(written("gitlab"))} == {"minor"}
    assert "critical" in {entry["severity"] for entry in json.loads(written("gitlab", "--strict"))}
    assert ET.fromstring(written("junit")).get("failures") == "0"
    strict = ET.fromstring(written("junit", "--strict"))
    assert int(strict.get("failures", "0")) > 0
    assert strict.get("skipped") == "0"
    (sarif,) = json.loads(written("sarif", "--strict"))["runs"]
    assert "error" in {n["level"] for n in sarif["invocations"][0]["toolExecutionNotifications"]}


def test_every_format_lets_pass_what_is_ignored() -> None:
    def written(name: str) -> str:
        words = ["--ignore", "dropped-tensor", "--ignore", "unfilled-parameter", "--format", name]
        return run(str(SEED), *RELEASE, *words).stdout

    assert "error title" not in written("github")
    assert [entry["severity"] for entry in json.loads(written("gitlab"))] == ["minor"]
    junit = ET.fromstring(written("junit"))
    assert junit.get("failures") == "0"
    assert "error (ignored): fc.weight" in "".join(junit.itertext())
    (sarif,) = json.loads(written("sarif"))["runs"]
    decisive = [r for r in sarif["results"] if r["properties"]["engine"] == "sglang-0.5.23"]
    assert {(r["ruleId"], len(r["suppressions"])) for r in decisive} == {
        ("dropped-tensor", 1), ("unfilled-parameter", 1), ("dead-ignore-entry", 0),
    }  # fmt: skip
    assert "dropped-tensor (ignored)" not in written("text")
    assert "4 ignored" in written("markdown")
    assert "(ignored)" in written("html")
