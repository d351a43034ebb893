"""The audit against what the real engines did, on every recorded case."""

from typing import Any

import pytest
from parity.case import Case, Record, recorded
from parity.expectation import AFTER_THE_LOAD, BEFORE_LOAD, OVER_RANKS, excused, fails, lossy, unfilled
from report_schema import valid

CASES = recorded(
    "cases", "fuzz", "random", "random-vllm", "regressions", "rules", "published", "mended", "differences"
)

Engine = dict[str, Any]


@pytest.fixture(
    scope="module", params=CASES, ids=lambda case: f"{case.folder.parent.name}/{case.folder.name}"
)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture(scope="module")
def report(case: Case, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return valid(case.report(tmp_path_factory.mktemp("case")))


@pytest.fixture(scope="module")
def pairs(case: Case, report: dict[str, Any]) -> list[tuple[Record, Engine]]:
    """For each recorded engine, what it did and what the audit says that it does."""
    entries = {engine["name"]: engine for engine in report["engines"]}
    return [(record, entries[name]) for name, record in case.records.items()]


def test_stage(pairs: list[tuple[Record, Engine]]) -> None:
    for record, engine in pairs:
        stage = engine["refusal"] and engine["refusal"]["stage"]
        # vLLM settles a draft's class with its config, and its quantization with its build.
        early = of_vllm(engine) and stage in BEFORE_LOAD and record["stage"] in BEFORE_LOAD
        assert stage == record["stage"] or early


def of_vllm(engine: Engine) -> bool:
    return bool(engine["name"].startswith("vllm-"))


def test_verdict(report: dict[str, Any], pairs: list[tuple[Record, Engine]]) -> None:
    errors = [finding for finding in report["findings"] if finding["severity"] == "error"]
    for record, engine in pairs:
        unrecorded = AFTER_THE_LOAD | (OVER_RANKS if record.get("tp", 1) > 1 else frozenset())
        later = {finding["engine"] for finding in errors if finding["rule"] in unrecorded}
        must_fail = fails(record) or engine["name"] in later
        assert (engine["verdict"] == "fail") == must_fail, engine["name"]


def test_class_and_method(pairs: list[tuple[Record, Engine]]) -> None:
    for record, engine in pairs:
        if record["class"]:
            assert engine["model_class"] == record["class"]
            assert engine["quantization"] == record["quantization"]


def test_parameters(pairs: list[tuple[Record, Engine]]) -> None:
    for record, engine in pairs:
        if record["stage"] in BEFORE_LOAD:
            continue
        said = {p["name"]: (p["shape"], p["dtype"]) for p in engine["parameters"]}
        assert said == {p["name"]: (p["shape"], p["dtype"]) for p in record["parameters"]}


def test_prefixes(pairs: list[tuple[Record, Engine]]) -> None:
    for record, engine in pairs:
        if record["stage"] in BEFORE_LOAD:
            continue
        classes = {p["name"]: p["module_class"] for p in record["parameters"]}
        for parameter in engine["parameters"]:
            module = parameter["name"].rpartition(".")[0]
            if module in record.get("asked", {}):
                assert parameter["prefix"] == record["asked"][module]
                assert parameter["module_class"] == classes[parameter["name"]]


def test_refused_tensor(case: Case, pairs: list[tuple[Record, Engine]]) -> None:
    for record, engine in pairs:
        # vLLM reads every tensor before it places one.
        if record["stage"] != "load" or of_vllm(engine):
            continue
        tensor = engine["refusal"]["tensor"]
        # DSpark reads every tensor before it loads one, and a check at the end holds none:
        # the record then names the last that was read.
        if tensor is None or "DSpark" in record["class"]:
            assert record["at_tensor"] == max(case.tensors)
        else:
            assert tensor == record["at_tensor"]


def test_outcomes(pairs: list[tuple[Record, Engine]]) -> None:
    for record, engine in pairs:
        if record["stage"]:
            continue
        loaded = {t["name"]: sorted(t["targets"]) for t in engine["tensors"] if t["outcome"] == "loaded"}
        assert loaded == {name: sorted(targets) for name, targets in record["loaded"].items()}
        outcomes = {t["name"]: t["outcome"] for t in engine["tensors"] if t["outcome"] != "loaded"}
        assert outcomes == {n: "ignored" if excused(record, n) else "dropped" for n in record["dropped"]}


def test_casts(pairs: list[tuple[Record, Engine]]) -> None:
    for record, engine in pairs:
        if record["stage"]:
            continue
        said = {t["name"]: t["cast"] for t in engine["tensors"] if t["cast"]}
        assert said == {c["tensor"]: {"to": c["to"], "lossy": lossy(c)} for c in record["casts"]}


def test_sizes_and_gaps(pairs: list[tuple[Record, Engine]]) -> None:
    for record, engine in pairs:
        if record["stage"]:
            continue
        if record.get("tp", 1) == 1:
            assert {(r["parameter"], r["took"]) for r in engine["resized"]} == {
                (r["parameter"], r["took"]) for r in record["wrong_size"]
            }
        assert set().union(*(unfilled(p) for p in engine["parameters"]), set()) == set(record["unfilled"])
