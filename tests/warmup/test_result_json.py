"""What the child sends is what the parent and the report have."""

import json
from dataclasses import replace

import pytest

from dflash_audit.warmup.result import Cosine, Death, Drift, Fidelity, Source, Stage, WarmUp
from dflash_audit.warmup.result_json import from_dict, to_dict

PLAIN = WarmUp("sglang-next", "reference", "cpu", "bfloat16")
FIDELITY = Fidelity(
    against="org/original",
    drifts=(
        Drift("fc", "int", 8, 128, error=0.1, gain=0.5, group=1.5, shift=-0.25),
        Drift("layers.0.mlp.gate_proj", "float", 16, 64, error=0.0, gain=1.0, group=1.0, shift=0.0),
    ),
    cosines=(Cosine("context", 0.75, 0.5, 0.8), Cosine("norm", 1.0, 1.0, 1.0)),
    first=0.5,
    common=0.25,
    common_rounding=0.125,
    rescaled=("layers.0",),
)
DEATH = Death("assert", "fc", "`a < b` in kernel", by_draft=True)


@pytest.mark.parametrize(
    "warmup",
    [
        PLAIN,
        replace(PLAIN, stages=(Stage("fc", 0.25, 0.5, 3.0), Stage("norm", 1.0, 1.0, None)), peak_bytes=2**40),
        replace(
            PLAIN, reached=("hidden", "tokens"), sources=(Source("fc", "fc", ("fc.weight",), ("a", "b")),)
        ),
        replace(PLAIN, out_of_range=(("table", -1, 8), ("table", 9, 8)), provoked=DEATH),
        replace(PLAIN, death=DEATH),
        replace(PLAIN, skipped="the engine refuses", survived=True),
        replace(PLAIN, fidelity=FIDELITY),
        replace(
            PLAIN,
            fidelity=replace(FIDELITY, drifts=(), cosines=(), first=None, common=None, common_rounding=None),
        ),
    ],
)
def test_there_and_back(warmup: WarmUp) -> None:
    assert from_dict(json.loads(json.dumps(to_dict(warmup), allow_nan=False))) == warmup


def test_the_keys_of_the_contract() -> None:
    said = to_dict(replace(PLAIN, stages=(Stage("fc", 0.25, 0.5, 3.0),), out_of_range=(("table", 9, 8),)))
    assert list(said)[:7] == ["engine", "backend", "device", "dtype", "verdict", "stages", "peak_bytes"]
    assert said["stages"] == [
        {"name": "fc", "seconds": 0.25, "finite": False, "nonfinite": 0.5, "largest": 3.0}
    ]
    assert said["out_of_range"] == [{"table": "table", "id": 9, "rows": 8}]
    assert said["verdict"] == "fail"


def test_the_keys_of_a_comparison() -> None:
    said = to_dict(replace(PLAIN, fidelity=FIDELITY))["fidelity"]
    assert [*said] == ["against", "drifts", "cosines", "first", "common", "common_rounding", "rescaled"]
    assert said["cosines"][0] == {"stage": "context", "mean": 0.75, "least": 0.5, "rounding": 0.8}
    fc, exact = said["drifts"]
    assert fc == {
        "matrix": "fc", "numbers": "int", "bits": 8, "width": 128,
        "error": 0.1, "decibels": 20.0, "gain": 0.5, "group": 1.5, "shift": -0.25,
    }  # fmt: skip
    assert exact["decibels"] is None
    assert to_dict(PLAIN)["fidelity"] is None


@pytest.mark.parametrize("death", [DEATH, replace(DEATH, by_draft=False)])
def test_a_death_by_the_machine_is_no_verdict(death: Death) -> None:
    assert to_dict(replace(PLAIN, death=death))["verdict"] == ("fail" if death.by_draft else "skipped")
