"""JUnit and GitLab's Code Quality, as their readers see them."""

import json
from pathlib import Path

import pytest
from formats.reports import ALL, WARMUPS, audited, unreadable, warmed, written
from junitparser import Error, Failure, JUnitXml, Skipped
from materialize import materialize
from test_cli import FIXTURES, name_class, run

from dflash_audit.report import Report
from dflash_audit.rules import CHECKPOINT_RULES, RULES, TARGET_RULES, WARMUP_RULES

NEXT = frozenset({"sglang-next"})
RELEASE = frozenset({"sglang-0.5.23"})


def junit(report: Report, scratch: Path) -> JUnitXml:
    file = scratch / "junit.xml"
    file.write_text(written("junit", report))
    return JUnitXml.fromfile(str(file))


def results(read: JUnitXml, kind: type) -> dict[str, list[str]]:
    """Suite -> the test cases with a result of that kind."""
    return {
        suite.name: [case.name for case in suite if any(isinstance(r, kind) for r in case.result)]
        for suite in read
    }


def test_junit_has_a_case_a_rule_that_looked(tmp_path: Path) -> None:
    read = junit(audited(), tmp_path)
    cases = {suite.name: [case.name for case in suite] for suite in read}
    on_an_engine = {*RULES} - {*CHECKPOINT_RULES} - {*WARMUP_RULES} - {*TARGET_RULES}
    assert {*cases} == {*ALL, "all engines"}
    assert {*cases["sglang-next"]} == on_an_engine
    assert {*cases["all engines"]} == {*CHECKPOINT_RULES}
    assert results(read, Failure) == {
        "sglang-0.5.19": ["dropped-tensor", "unfilled-parameter"],
        "sglang-0.5.23": ["dropped-tensor", "unfilled-parameter"], "sglang-next": [],
        "vllm-0.33.0": ["refused-load"], "all engines": [],
    }  # fmt: skip
    assert (read.failures, read.errors, read.skipped) == (5, 0, 0)
    assert read.tests == sum(map(len, cases.values()))
    release = next(suite for suite in read if suite.name == "sglang-0.5.23")
    dropped = next(case for case in release if case.name == "dropped-tensor")
    assert dropped.result[0].text.count("\nfix: ") == 2
    warned = next(case for case in release if case.name == "dead-ignore-entry")
    assert warned.system_out.startswith("warning: re:.*self_attn")


def test_junit_fails_for_what_the_audit_fails_for(tmp_path: Path) -> None:
    words = ["--engine", "sglang-0.5.23", "--fail-on", "warning", "--format", f"junit={tmp_path}/j.xml"]
    assert run(str(FIXTURES / "seed-w8a16"), *words).returncode == 1
    read = JUnitXml.fromfile(str(tmp_path / "j.xml"))
    assert "dead-ignore-entry" in results(read, Failure)["sglang-0.5.23"]
    assert [suite.name for suite in read] == ["sglang-0.5.23", "all engines"]


def test_junit_of_what_was_not_judged_or_not_read(tmp_path: Path) -> None:
    read = junit(unreadable(), tmp_path)
    assert results(read, Error) == {"audit": ["audit"]}
    assert (read.tests, read.errors) == (1, 1)
    source = materialize(FIXTURES / "cases" / "dense-dspark", tmp_path / "draft")
    name_class(source, "Lfm2DSparkDraftModel")
    skipped = results(junit(audited(source, NEXT), tmp_path), Skipped)["sglang-next"]
    assert {"dropped-tensor", "tap-count", "rank-limit"} <= {*skipped}


@pytest.mark.parametrize("folder", WARMUPS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_junit_has_the_rules_of_a_warm_up(folder: Path, tmp_path: Path) -> None:
    report = warmed(folder, tmp_path / "draft")
    (engine,) = report.gating
    wanted = {f.rule for f in report.findings if f.severity == "error" and report.counts_in_summary(f)}
    failed = results(junit(report, tmp_path), Failure)
    assert {*failed[engine]} == {rule for rule in wanted if rule not in CHECKPOINT_RULES}


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in WARMUP_RULES])
def test_junit_leaves_out_no_finding(rule: str, tmp_path: Path) -> None:
    folders = [f for f in (FIXTURES / "rules" / rule).glob("bad-*") if (f / "tensors.json").exists()]
    for folder in folders:
        report = audited(materialize(folder, tmp_path / folder.name))
        xml = written("junit", report)
        assert xml.count("\nfix: ") == sum(1 for finding in report.findings if finding.hint)


def test_gitlab() -> None:
    done = run("seed-w8a16", "--engine", "sglang-0.5.23", "--format", "gitlab", cwd=FIXTURES)
    said = json.loads(done.stdout)
    assert [(entry["check_name"], entry["severity"]) for entry in said] == [
        ("dropped-tensor", "critical"), ("dropped-tensor", "critical"),
        ("unfilled-parameter", "critical"), ("unfilled-parameter", "critical"),
        ("dead-ignore-entry", "minor"),
    ]  # fmt: skip
    for entry in said:
        assert {*entry} == {"description", "check_name", "fingerprint", "severity", "location"}
        assert entry["location"]["lines"] == {"begin": 1}
    assert said[0]["location"]["path"] == "seed-w8a16/model.safetensors"
    assert said[-1]["location"]["path"] == "seed-w8a16/config.json"
    again = run(str(FIXTURES / "seed-w8a16"), "--engine", "sglang-0.5.23", "--format", "gitlab", cwd=FIXTURES)
    assert json.loads(again.stdout) == said


def test_gitlab_and_sarif_know_a_finding_by_the_same_mark() -> None:
    report = audited()
    results = json.loads(written("sarif", report))["runs"][0]["results"]
    marks = [result["partialFingerprints"]["primaryLocationLineHash"] for result in results]
    assert [entry["fingerprint"] for entry in json.loads(written("gitlab", report))] == marks


def test_gitlab_of_what_was_not_judged_or_not_read(tmp_path: Path) -> None:
    (entry,) = json.loads(written("gitlab", unreadable()))
    assert (entry["severity"], entry["check_name"]) == ("blocker", "no-such-source")
    source = materialize(FIXTURES / "cases" / "dense-dspark", tmp_path)
    name_class(source, "Lfm2DSparkDraftModel")
    (entry,) = json.loads(written("gitlab", audited(source, NEXT)))
    assert (entry["severity"], entry["check_name"]) == ("minor", "not-judged")
    assert written("gitlab", audited(gating=NEXT)).count('"fingerprint"') == 1
