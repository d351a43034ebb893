"""Every rule on recorded cases: where it must speak, and where it must stay quiet."""

from pathlib import Path

import pytest
from parity.case import FIXTURES, Case

from dflash_audit.rules import CHECKPOINT_RULES, ENGINE_RULES

RELEASE, NEXT = "sglang-0.5.23", "sglang-next"

# rule, case, engine, a part of the subjects
BAD = [
    ("refused-config", "quant-unknown", RELEASE, "config.json"),
    ("refused-config", "layer-types-short", NEXT, "config.json"),
    ("unknown-class", "arch-unknown", NEXT, "architectures"),
    ("refused-quantization", "../rules/ct-targets-missing", NEXT, "quantization_config"),
    ("refused-build", "target-ids-range", RELEASE, "DFlash"),
    ("refused-load", "shape-q", NEXT, "layers.0.self_attn.q_proj.weight"),
    ("refused-load", "missing-dflash2-fc_weight", NEXT, "the checkpoint"),
    ("dropped-tensor", "bias-unannounced", RELEASE, "layers.1.self_attn.q_proj.bias"),
    ("dropped-tensor", "conv-keys-lost", NEXT, "layers.0.attention_conv.base_kernel"),
    ("unfilled-parameter", "missing-codebook", NEXT, "candidate_selector."),
    ("unfilled-parameter", "missing-norms", RELEASE, "layers.1.self_attn.q_norm.weight"),
    ("lossy-cast", "ct-dflash2-fp8dyn_all", RELEASE, "fc.weight"),
    ("lossy-cast", "fp8-dynamic-bf16-weights", NEXT, "layers.0.self_attn.o_proj.weight"),
    ("resized-parameter", "../rules/heads-too-few", RELEASE, "layers.0.self_attn.o_proj.weight"),
    ("dead-ignore-entry", "ct-dflash2-w8a16_seed", RELEASE, r"re:.*self_attn\.(q|k|v)_proj$"),
    ("dead-ignore-entry", "ct-ignore-gate-up-fused-spelling", NEXT, "re:.*gate_up_proj$"),
    ("server-flag", "../rules/nemotron35-sinks", RELEASE, "trtllm_mha"),
    ("ignored-tensor", "extra-head-embed", NEXT, "lm_head.weight"),
    ("engines-disagree", "ct-dflash2-w8a16_seed", None, "sglang"),
]

GOOD = [
    ("refused-config", "dense-dflash2", RELEASE),
    ("unknown-class", "dense-minimax2", NEXT),
    ("refused-quantization", "ct-dflash2-w8a16_seed", NEXT),
    ("refused-build", "dense-domino", RELEASE),
    ("refused-load", "vendor-encoder", NEXT),
    ("dropped-tensor", "extra-head-embed", NEXT),
    ("dropped-tensor", "ct-dflash2-w4a16_all", NEXT),
    ("unfilled-parameter", "inherit-fp8", RELEASE),
    ("unfilled-parameter", "nemotron35-nvfp4", NEXT),
    ("lossy-cast", "dtype-fp32", NEXT),
    ("resized-parameter", "dense-lilicorr", NEXT),
    ("dead-ignore-entry", "ct-dflash2-w8a16_seed", NEXT),
    ("dead-ignore-entry", "ct-ignore-gate-up-both-spellings", RELEASE),
    ("server-flag", "nemotron35-nvfp4", RELEASE),
    ("ignored-tensor", "bias-unannounced", NEXT),
    ("engines-disagree", "dense-dspark", None),
]


def said(case: str, rule: str, engine: str | None, scratch: Path) -> list[str]:
    report = Case(FIXTURES / "cases" / case).report(scratch)
    if engine is None:  # rules over all engines speak when a gating one passes: let the default gate
        report = Case(FIXTURES / "cases" / case).report(scratch / "default", gating=frozenset({NEXT}))
    found = [f for f in report["findings"] if (f["rule"], f["engine"]) == (rule, engine)]
    return [subject for finding in found for subject in (finding["subject"], *finding["subjects"])]


@pytest.mark.parametrize(("rule", "case", "engine", "subject"), BAD)
def test_bad(rule: str, case: str, engine: str | None, subject: str, tmp_path: Path) -> None:
    assert any(subject in name for name in said(case, rule, engine, tmp_path))


@pytest.mark.parametrize(("rule", "case", "engine"), GOOD)
def test_good(rule: str, case: str, engine: str | None, tmp_path: Path) -> None:
    assert said(case, rule, engine, tmp_path) == []


def test_every_rule_has_a_bad_and_a_good_case() -> None:
    rules = {*ENGINE_RULES, *CHECKPOINT_RULES}
    assert {row[0] for row in BAD} == rules
    assert {row[0] for row in GOOD} == rules
