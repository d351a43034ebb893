"""Drafts as they are published, at full size.

A case's `source.md` says which of its values are quoted and which are inferred.
Its tensors are zeros: what is published here is layout.
"""

from pathlib import Path
from typing import Any

import pytest
from parity.case import FIXTURES, Case, Record, recorded
from parity.expectation import AFTER_THE_LOAD, fails, lossy, unfilled

OLDER, RELEASE, CHANGE = "sglang-0.5.19", "sglang-0.5.23", "sglang-next"

DENSE = (
    "dspark-generic",
    "dspark-qwen3-14b-block7",
    "dspark-qwen3-4b-block7",
    "dspark-qwen3-8b-block7",
    "flash-next-dflash2",
    "glm-5.3-dflash2",
    "glm-5.3-flash-dflash2",
    "gpt-oss-120b-dflash",
    "gpt-oss-20b-dflash",
    "k3-dspark",
    "laguna-s-2.1-dflash",
    "laguna-xs-2.1-dflash",
    "minicpm5-2b-dspark",
    "minimax-m3-dspark",
    "muse-glimmer-30b-assistant",
    "muse-glimmer-30b-dflash2",
    "qwen3-8b-dflash-b16",
    "qwen3-8b-dflash-b16-nested",
    "qwen3-8b-domino-b16",
    "qwen3.5-122b-a10b-dflash",
    "qwen3.5-122b-a10b-dflash-early",
    "qwen3.5-27b-dflash",
    "qwen3.5-4b-dflash",
    "qwen3.6-27b-dflash",
    "qwen3.6-35b-a3b-dflash",
    "qwen3.6-35b-a3b-dflash-early",
    "qwen3.8-27b-dflash2",
    "qwen3.8-27b-dspark",
    "tiny-dflash",
    "tiny-dflash2",
    "tiny-dspark",
    "tiny-laguna",
)
"""What people serve today in BF16: nothing may be held against it."""

IGNORED = {
    "dspark-qwen3-14b-block7": {"confidence_head.proj.weight", "confidence_head.proj.bias"},
    "dspark-qwen3-4b-block7": {"confidence_head.proj.weight", "confidence_head.proj.bias"},
    "dspark-qwen3-8b-block7": {"confidence_head.proj.weight", "confidence_head.proj.bias"},
    "qwen3.6-35b-a3b-dflash-early": {"embed_tokens.weight", "lm_head.weight"},
    "tiny-dspark": {"confidence_head.proj.weight", "confidence_head.proj.bias"},
}
"""The tensors of dense drafts that go nowhere, by design."""

WARNED = {
    "dflash-flash-next-block7": {"anchor-first"},
    "dflash-qwen3-8b-block7": {"anchor-first"},
    "mimo-dflash-sinks": {"mask-embedding", "unread-key"},
    "minimax-m2-dflash": {"guessed-taps"},
    "qwen3.8-27b-dflash2-exp": {"unread-key"},
    "specforge-tiny": {"block-size", "guessed-taps"},
}
"""Dense drafts that load whole, and what their public record holds against them: a first row that SGLang does
not sample (sglang#40144), a window and a mask embedding that only the config or a side file tells of, taps
and a block size that are not named."""

OTHERS = {
    "bonsai-27b-dspark": ("fail", "fail"),
    "dflash-block7-markov-hybrid": ("fail", "fail"),
    "dspark-qwen3-8b-block7-modelopt-nvfp4": ("fail", "pass"),
    "kimi-k3-dspark-mla": ("fail", "fail"),
    "laguna-s-2.1-dflash-fp8": ("pass", "pass"),
    "laguna-s-2.1-dflash-int4": ("pass", "pass"),
    "laguna-s-2.1-dflash-nvfp4": ("pass", "pass"),
    "nemotron-3.5-lightning-dflash": ("pass", "pass"),
    "nemotron-3.5-lightning-dspark": ("warn", "warn"),
    "qwen3-8b-dflash-modelopt-fp8": ("fail", "pass"),
    "qwen3-8b-dflash-modelopt-fp8-pb-wo": ("fail", "fail"),
    "qwen3-8b-dflash-modelopt-fp8-pc-pt": ("fail", "fail"),
    "qwen3-8b-dflash-modelopt-nvfp4": ("fail", "pass"),
    "qwen3-8b-dflash-modelopt-w4a16-nvfp4": ("fail", "pass"),
    "qwen3-8b-speculator-dflash": ("fail", "fail"),
    "qwen3-8b-speculator-dspark": ("fail", "fail"),
    "qwen3.8-27b-dflash2-exl3": ("fail", "fail"),
    "qwen3.8-27b-dflash2-fp8-block": ("fail", "pass"),
    "qwen3.8-27b-dflash2-fp8-dynamic": ("fail", "pass"),
    "qwen3.8-27b-dflash2-fp8-mlp": ("pass", "pass"),
    "qwen3.8-27b-dflash2-fp8-no-qkv-channel": ("pass", "pass"),
    "qwen3.8-27b-dflash2-fp8-no-qkv-tensor": ("pass", "pass"),
    "qwen3.8-27b-dflash2-gptq": ("fail", "pass"),
    "qwen3.8-27b-dflash2-mixed-nvfp4-fp8": ("fail", "pass"),
    "qwen3.8-27b-dflash2-mlx-4bit": ("fail", "fail"),
    "qwen3.8-27b-dflash2-quark-mxfp4": ("skipped", "skipped"),
    "qwen3.8-27b-dflash2-speculators": ("fail", "fail"),
    "qwen3.8-27b-dflash2-w4a16": ("fail", "pass"),
    "qwen3.8-27b-dflash2-w4a16-fc16": ("pass", "fail"),
    "qwen3.8-27b-dflash2-w4a16-fc8": ("fail", "fail"),
    "qwen3.8-27b-dflash2-w8a16-mapping": ("fail", "fail"),
    "tiny-dflash2-w4a16": ("fail", "pass"),
}
"""Verdicts on the release and on the change."""

NEWER = (
    "laguna-s-2.1-dflash-nvfp4",
    "mimo-dflash-sinks",
    "minimax-m3-dspark",
    "qwen3-8b-domino-b16",
    "qwen3.8-27b-dflash2-fp8-mlp",
)
"""What the older release does not serve, and the release does: sinks, Domino's projector and swigluoai are
new in it, and FP8 or NVFP4 weights alone."""

NOT_REPLAYED = ("qwen3.8-27b-dflash2-quark-mxfp4",)
"""What the audit says that it does not replay, so that there is nothing to record."""

ON_VLLM_NOT_REPLAYED = ("qwen3.8-27b-dflash2-quark-mxfp4",)
"""Of this there is a record of vLLM, though no Quark is replayed on it."""

NOT_IMPORTED = ("kimi-k3-dspark-mla",)
"""Of this vLLM has a class that cannot be imported without a GPU."""

ON_VLLM = {
    "kimi-k3-dspark-mla": "skipped",
    "qwen3-8b-speculator-dflash": "pass",
    "qwen3-8b-speculator-dspark": "pass",
    "qwen3.8-27b-dflash2-speculators": "pass",
}
"""Drafts that are made for vLLM: nothing may be held against them there, even where they are not replayed."""

Engine = dict[str, Any]
Report = dict[str, Any]


@pytest.fixture(scope="module", params=recorded("published"), ids=lambda case: case.folder.name)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture(scope="module")
def report(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return case.report(tmp_path_factory.mktemp("published"))


def engines(report: Report) -> tuple[Engine, Engine]:
    by_name = {engine["name"]: engine for engine in report["engines"]}
    return by_name[RELEASE], by_name[CHANGE]


def test_every_folder_is_listed() -> None:
    folders = {path.name for path in (FIXTURES / "published").iterdir()}
    assert folders == {*DENSE, *WARNED, *OTHERS} == {case.folder.name for case in recorded("published")}


def test_the_source_is_named(case: Case) -> None:
    quoted, inferred, *_ = (case.folder / "source.md").read_text().split("\n\n")
    assert quoted.startswith("Quoted") and inferred.startswith("Inferred")


def test_agrees_with_the_engines(case: Case, report: Report) -> None:
    named = case.folder.name
    asked = {OLDER, RELEASE, CHANGE} if named not in NOT_REPLAYED else set()
    asked |= {"vllm-0.33.0"} if named not in NOT_IMPORTED else set()
    assert case.records.keys() >= asked
    errors = [finding for finding in report["findings"] if finding["severity"] == "error"]
    later = {finding["engine"] for finding in errors if finding["rule"] in AFTER_THE_LOAD}
    for engine in report["engines"]:
        name = engine["name"]
        if name == "vllm-0.33.0" and named in ON_VLLM_NOT_REPLAYED:
            assert engine["verdict"] == "skipped"
        elif name in case.records:
            stops = {"fails": True} if name in later else {}
            assert said(engine) == did(case.records[name]) | stops, name


def test_verdicts(case: Case, report: Report) -> None:
    verdicts = tuple(engine["verdict"] for engine in engines(report))
    name = case.folder.name
    assert verdicts == OTHERS.get(name, ("warn", "warn") if name in WARNED else ("pass", "pass"))


def test_what_the_older_release_does_not_serve(case: Case, report: Report) -> None:
    older, release, *_ = (engine["verdict"] for engine in report["engines"])
    assert older == ("fail" if case.folder.name in NEWER else release)


@pytest.mark.parametrize("name", DENSE)
def test_nothing_is_held_against_a_dense_draft(name: str, tmp_path: Path) -> None:
    report = Case(FIXTURES / "published" / name).report(tmp_path)
    for engine in engines(report):
        assert engine["verdict"] == "pass"
        assert lost(engine, "ignored") == IGNORED.get(name, set())
        found = {f["rule"] for f in report["findings"] if f["engine"] in (engine["name"], None)}
        assert found == ({"ignored-tensor"} if name in IGNORED else set())


@pytest.mark.parametrize("name", WARNED)
def test_the_record_is_held_against_a_dense_draft(name: str, tmp_path: Path) -> None:
    report = Case(FIXTURES / "published" / name).report(tmp_path)
    for engine in engines(report):
        found = [f for f in report["findings"] if f["engine"] == engine["name"]]
        assert {f["rule"] for f in found} == WARNED[name]
        assert {f["severity"] for f in found} == {"warning"}


@pytest.mark.parametrize("name", ON_VLLM)
def test_nothing_is_held_against_a_draft_of_vllm_there(name: str, tmp_path: Path) -> None:
    report = Case(FIXTURES / "published" / name).report(tmp_path)
    verdicts = {engine["name"]: engine["verdict"] for engine in report["engines"]}
    assert verdicts["vllm-0.33.0"] == ON_VLLM[name]


def lost(engine: Engine, *outcomes: str) -> set[str]:
    return {tensor["name"] for tensor in engine["tensors"] if tensor["outcome"] in outcomes}


def said(engine: Engine) -> dict[str, Any]:
    """What the audit says that the engine does."""
    refusal = engine["refusal"]
    outcome = {"fails": engine["verdict"] == "fail", "stage": refusal and refusal["stage"]}
    if refusal:
        return outcome
    casts = {(t["name"], t["cast"]["to"], t["cast"]["lossy"]) for t in engine["tensors"] if t["cast"]}
    gaps = {gap for parameter in engine["parameters"] for gap in unfilled(parameter)}
    return outcome | {"dropped": lost(engine, "dropped", "ignored"), "unfilled": gaps, "casts": casts}


def did(record: Record) -> dict[str, Any]:
    """The same of what the engine did."""
    outcome = {"fails": fails(record), "stage": record["stage"]}
    if record["stage"]:
        return outcome
    casts = {(cast["tensor"], cast["to"], lossy(cast)) for cast in record["casts"]}
    return outcome | {
        "dropped": set(record["dropped"]),
        "unfilled": set(record["unfilled"]),
        "casts": casts,
    }
