"""SARIF: valid by the published schema, and with what code scanning needs."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from formats.reports import SEED, WARMUPS, audited, hostile, unreadable, warmed, written
from jsonschema import Draft4Validator
from materialize import materialize
from parity.case import FIXTURES
from test_cli import run

from dflash_audit.report import Report
from dflash_audit.rules import page
from dflash_audit.sources.checkpoint import Origin

SCHEMA = Path(__file__).parent / "schemas" / "sarif-2.1.0-rtm.5.json"
BAD = sorted(path for path in (FIXTURES / "rules").glob("*/bad-*") if (path / "tensors.json").exists())


@cache
def validator() -> Any:
    return Draft4Validator(json.loads(SCHEMA.read_text()), format_checker=Draft4Validator.FORMAT_CHECKER)


def sarif(report: Report) -> dict[str, Any]:
    """The one run of the log of a report, once the log is valid."""
    log = json.loads(written("sarif", report))
    assert [f"{e.json_path}: {e.message[:300]}" for e in validator().iter_errors(log)] == []
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def test_the_schema_sees_a_fault() -> None:
    log = json.loads(written("sarif", audited()))
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert not validator().is_valid(log)


@pytest.mark.parametrize("folder", BAD, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_valid_for_every_rule(folder: Path, tmp_path: Path) -> None:
    report = audited(materialize(folder, tmp_path))
    said = sarif(report)
    assert [result["ruleId"] for result in said["results"]] == [finding.rule for finding in report.findings]
    for result in said["results"]:
        assert said["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


@pytest.mark.parametrize("folder", WARMUPS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_valid_for_recorded_warm_ups(folder: Path, tmp_path: Path) -> None:
    sarif(warmed(folder, tmp_path))


def test_hostile_names() -> None:
    assert len(sarif(hostile())["results"]) == len(hostile().findings)


def test_what_could_not_be_read() -> None:
    (invocation,) = sarif(unreadable())["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 3)
    (told,) = invocation["toolExecutionNotifications"]
    assert (told["level"], told["message"]["text"]) == ("error", "nothing: is not there")


def test_a_rule_has_its_page() -> None:
    rules = {rule["id"]: rule for rule in sarif(audited())["tool"]["driver"]["rules"]}
    assert rules.keys() == {finding.rule for finding in audited().findings}
    rule = rules["dropped-tensor"]
    assert rule["help"]["markdown"] == page("dropped-tensor")
    assert rule["shortDescription"]["text"] == "A tensor goes nowhere, and nothing excuses it."
    assert rule["defaultConfiguration"]["level"] == "error"
    assert rules["dead-ignore-entry"]["defaultConfiguration"]["level"] == "warning"


def test_an_engine_that_does_not_decide_informs() -> None:
    said = sarif(audited(gating=frozenset({"sglang-next"})))
    levels = {(r["properties"]["engine"], r["kind"], r["level"]) for r in said["results"]}
    names = ("sglang-0.5.19", "sglang-0.5.23", "vllm-0.33.0")
    other = {(engine, "informational", "none") for engine in names}
    assert levels == {*other, (None, "fail", "warning")}
    assert ("sglang-0.5.23", "fail", "error") in {
        (r["properties"]["engine"], r["kind"], r["level"]) for r in sarif(audited())["results"]
    }


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES)
    places = {}
    for result in sarif(audited(Path("seed-w8a16")))["results"]:
        (location,) = result["locations"]
        name = location["logicalLocations"][0]
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        places[result["ruleId"]] = (uri, name["kind"], name["fullyQualifiedName"])
    assert places["dropped-tensor"] == (
        "seed-w8a16/model.safetensors", "tensor", "layers.0.self_attn.k_proj.weight"
    )  # fmt: skip
    assert places["unfilled-parameter"] == ("seed-w8a16/config.json", "parameter", "fc.weight")
    assert places["dead-ignore-entry"] == (
        "seed-w8a16/config.json", "entry", "re:.*self_attn\\.(q|k|v)_proj$"
    )  # fmt: skip


def test_a_folder_elsewhere_and_a_repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = materialize(FIXTURES / "cases" / "act-gelu", tmp_path.parent / "a draft é")
    elsewhere = sarif(audited(source))
    (first, *_) = elsewhere["results"]
    uri = first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == (source / "config.json").as_uri()
    repo = sarif(replace(audited(source), origin=Origin("hub", "org/draft:dflash", "main", "0" * 40)))
    uri = repo["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "org/draft/dflash/config.json"
    assert repo["automationDetails"]["id"] == "dflash-audit/org/draft/dflash/"
    assert repo["properties"]["commit"] == "0" * 40


def fingerprints(source: str, cwd: Path, *words: str) -> list[str]:
    log = json.loads(run(source, "--format", "sarif", *words, cwd=cwd).stdout)
    return [result["partialFingerprints"]["primaryLocationLineHash"] for result in log["runs"][0]["results"]]


def test_fingerprints_stay_and_differ() -> None:
    here = fingerprints("seed-w8a16", FIXTURES)
    assert (
        here == fingerprints(str(SEED), FIXTURES) == fingerprints("./seed-w8a16/", FIXTURES, "--gpu", "h100")
    )
    assert len({*here}) == len(here) > 3
    assert not {*here} & {*fingerprints("seed-w8a16", FIXTURES.parent / "fixtures" / "..")}


def test_a_list_in_modelopts_own_file(tmp_path: Path) -> None:
    uris = {}
    for name in ("cases/ct-dflash2-w8a16_q_only", "random/dflash2-mo-mixed-03"):
        for result in sarif(audited(materialize(FIXTURES / name, tmp_path / name)))["results"]:
            physical = result["locations"][0]["physicalLocation"]
            uris[name, result["ruleId"]] = physical["artifactLocation"]["uri"].rpartition("/")[2]
    assert uris["random/dflash2-mo-mixed-03", "wrong-ignore-entry"] == "hf_quant_config.json"
    assert uris["cases/ct-dflash2-w8a16_q_only", "dead-ignore-entry"] == "config.json"
