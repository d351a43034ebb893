"""The reference against z-lab's package: recorded (scripts/record_zlab.py), and live where it is there."""

import pytest

pytest.importorskip("torch")

import torch
from reference.random_draft import FIXTURES, cosine
from reference.zlab_cases import CASES, case
from safetensors.torch import load_file

from dflash_audit.warmup.reference import run
from dflash_audit.warmup.watch import Watch

pytestmark = pytest.mark.warmup


def check(name: str, hidden: torch.Tensor, tokens: torch.Tensor) -> None:
    _, draft, inputs = case(name)
    outputs = run(draft.forward, draft.weights, inputs, Watch())
    torch.testing.assert_close(outputs.hidden, hidden, atol=2e-4, rtol=1e-3)
    assert cosine(outputs.hidden, hidden) > 0.99999
    assert outputs.tokens.tolist() == tokens.tolist()


@pytest.mark.parametrize("name", CASES)
def test_it_computes_what_zlab_recorded(name: str) -> None:
    recorded = load_file(FIXTURES / "reference" / "zlab.safetensors")
    check(name, recorded[f"{name}/hidden"], recorded[f"{name}/tokens"])


@pytest.mark.parametrize("name", CASES)
def test_it_computes_what_zlab_does(name: str) -> None:
    pytest.importorskip("dflash.model")
    from reference import zlab

    config, draft, inputs = case(name)
    check(name, *zlab.run(zlab.build(config, draft), draft, inputs))
