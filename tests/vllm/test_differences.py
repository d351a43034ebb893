"""What SGLang and vLLM take in different ways, each engine's verdict as its record has it."""

import json
from pathlib import Path
from typing import Any

import pytest
from materialize import materialize
from parity.case import FIXTURES, Case, recorded
from parity.expectation import fails

from dflash_audit.auditing import Request, audit
from dflash_audit.engines import ENGINES
from dflash_audit.fixing.fix import fix

DIFFERENCES = recorded("differences")

SGLANG, VLLM = "sglang-0.5.23", "vllm-0.33.0"

LOADS: dict[str, tuple[bool, bool]] = {
    "01-fc-bare-ignored": (True, False),
    "02-fp8-fc-bare-ignored": (True, False),
    "03-fc-packed": (False, True),
    "04-shards-targeted": (False, False),
    "05-mlp-ignored": (False, True),
    "06-o-proj-suffix": (True, False),
    "07-prefixed-names": (True, False),
    "08-stray-sinks": (False, False),
    "08b-sinks-by-top-level-key": (False, True),
    "09-midlayer": (False, True),
    "09b-midlayer-renamed": (True, True),
    "10-laguna-split-qkv": (True, False),
    "10b-laguna-one-qkv": (True, True),
    "11-domino": (True, False),
    "12-dspark-under-the-plain-class": (False, False),
    "13-gated-markov-head": (True, False),
    "14-own-head-and-embedding": (True, True),
    "15-reduced-vocabulary": (False, True),
    "16-stray-d2t": (False, False),
    "17-speculators": (False, True),
    "18-speculators-xpress": (False, False),
    "19-window-by-another-key": (True, True),
    "20-causal-by-another-key": (True, True),
    "21-gemma-norm": (True, True),
    "21a-rope-of-pairs": (True, True),
    "21b-partial-rotary-factor": (True, True),
    "22-swigluoai": (True, False),
    "23-wider-target": (False, True),
    "24-aux-layers-of-eagle": (True, True),
    "25-gptq": (False, False),
    "25b-gptq-dense-fc": (True, False),
    "25c-gptq-with-its-layers-named": (False, True),
    "26-modelopt-shards-ignored": (True, False),
    "26b-modelopt-fp8-shards-ignored": (True, False),
    "27-modelopt-layer-ignored": (False, True),
    "28-feature-mlp-not-ignored": (True, False),
    "28b-feature-mlp-not-ignored-in-fp8": (True, False),
    "29-kernel-projection-not-ignored": (True, False),
    "30-markov-head-not-ignored": (True, False),
    "30b-markov-head-ignored-anywhere": (True, True),
    "31-sampled-from-the-anchor": (True, True),
    "33-down-proj-short": (False, False),
    "34-two-ignore-lists": (True, True),
    "35-modelopt-exclude-modules": (False, True),
    "36-minimax-dflash2": (True, False),
    "37-xpress": (False, True),
    "38-own-head-absent": (True, True),
    "39-down-proj-missing": (False, False),
}
"""Case -> whether the releases of SGLang and vLLM load it whole, as read in their sources."""

SILENT = {
    "14-own-head-and-embedding": {(SGLANG, "ignored-tensor")},
    "19-window-by-another-key": {(SGLANG, "unread-key")},
    "20-causal-by-another-key": {(SGLANG, "unread-key")},
    "21-gemma-norm": {(VLLM, "unread-key")},
    "21a-rope-of-pairs": {(VLLM, "unread-key")},
    "21b-partial-rotary-factor": {(SGLANG, "unread-key")},
    "24-aux-layers-of-eagle": {(SGLANG, "guessed-taps")},
    "31-sampled-from-the-anchor": {(SGLANG, "unread-key"), (VLLM, "refused-start")},
    "38-own-head-absent": {(SGLANG, "unread-key"), (VLLM, "absent-head")},
}
"""Drafts that both load, and that one of them then serves in another way: what tells of it."""

MENDED = {
    "07-prefixed-names": ('Take "model." off the names', None),
    "09-midlayer": ('"layers.0."', "09b-midlayer-renamed"),
    "10-laguna-split-qkv": ("as one qkv_proj", "10b-laguna-one-qkv"),
    "25-gptq": ("modules_in_block_to_quantize", "25c-gptq-with-its-layers-named"),
    "29-kernel-projection-not-ignored": ('Add "re:(.*\\\\.)?kernel_projection$" to ignore', None),
    "30-markov-head-not-ignored": ('Add "*markov_w2" to ignore', "30b-markov-head-ignored-anywhere"),
    "38-own-head-absent": ("Remove has_own_lm_head", None),
}
"""Case -> the change for both, and the case that has it, where there is one; who decides passes it before."""


def verdicts(case: Case) -> dict[str, bool]:
    return {name: not fails(record, case.held_twice) for name, record in case.records.items()}


@pytest.mark.parametrize("case", DIFFERENCES, ids=lambda case: case.folder.name)
def test_every_engine_is_recorded_and_loads_what_its_source_says(case: Case) -> None:
    assert {*case.records} == {*ENGINES}
    loads = verdicts(case)
    assert (loads[SGLANG], loads[VLLM]) == LOADS[case.folder.name]


def test_a_change_beside_the_list_is_looked_for_where_the_list_is_not_enough(tmp_path: Path) -> None:
    draft = materialize(FIXTURES / "differences" / "01-fc-bare-ignored", tmp_path / "draft")
    config = json.loads((draft / "config.json").read_text()) | {"has_own_lm_head": True}
    (draft / "config.json").write_text(json.dumps(config))
    (found,) = (
        each
        for each in audit(Request(str(draft), frozenset({"sglang-next"}))).findings
        if each.rule == "engines-disagree"
    )
    assert found.hint is not None and "Replayed so," in found.hint
    assert "to quantization_config.ignore." in found.hint and "has_own_lm_head" in found.hint
    assert fix(Request(str(draft), frozenset(ENGINES))).outcome == "mended"


def disagreement(case: Case, scratch: Path, gating: str) -> dict[str, Any]:
    report = case.report(scratch, frozenset({gating}))
    (found,) = (f for f in report["findings"] if f["rule"] == "engines-disagree")
    return dict(found)


@pytest.mark.parametrize("name", SILENT)
def test_what_both_load_and_serve_in_different_ways_is_told(name: str, tmp_path: Path) -> None:
    report = Case(FIXTURES / "differences" / name).report(tmp_path)
    told = {(f["engine"], f["rule"]) for f in report["findings"] if f["engine"] in (SGLANG, VLLM)}
    assert told == SILENT[name]


@pytest.mark.parametrize("name", MENDED)
def test_the_smallest_change_for_both_is_told_and_serves_both(name: str, tmp_path: Path) -> None:
    says, mended = MENDED[name]
    case = Case(FIXTURES / "differences" / name)
    gating = VLLM if name == "09-midlayer" else "sglang-next"
    found = disagreement(case, tmp_path, gating)
    assert says in found["hint"]
    assert "Replayed so," in found["hint"]
    if mended is not None:
        loads = verdicts(Case(FIXTURES / "differences" / mended))
        assert loads["sglang-next"] and loads[VLLM]
