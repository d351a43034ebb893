"""The reference against what SGLang's own classes computed (scripts/record_reference.py)."""

from dataclasses import replace
from functools import cache

import pytest
from reference.families import BLOCKS, CONTEXT, FAMILIES, HEAD_SIZE, POOL, ROPE_POSITIONS, ROPES, SEED, draft

pytest.importorskip("torch")

import torch
from reference.random_draft import FIXTURES, cosine, draft_of, random_weight
from reference.zlab_cases import SEED_DRAFT, case, in_dtype
from safetensors.torch import load_file

from dflash_audit.engines.sglang.rope import read_rope
from dflash_audit.engines.sglang.rope_frequencies import rope_of
from dflash_audit.forward import Domino
from dflash_audit.warmup.reference import Outputs, random_inputs, run
from dflash_audit.warmup.reference.rope import rotate
from dflash_audit.warmup.watch import Watch

pytestmark = pytest.mark.warmup

CPU = torch.device("cpu")


@cache
def recorded() -> dict[str, torch.Tensor]:
    tensors: dict[str, torch.Tensor] = load_file(FIXTURES / "reference" / "sglang.safetensors")
    return tensors


class Shown(Watch):
    """A watch that keeps what it is shown, by stage."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: dict[str, list[torch.Tensor]] = {}

    def out(self, output: torch.Tensor) -> torch.Tensor:
        self.shown.setdefault(self._at, []).append(output)
        return super().out(output)


@cache
def ran(name: str, dtype: torch.dtype = torch.float32) -> tuple[Outputs, dict[str, list[torch.Tensor]]]:
    made = draft_of(FAMILIES[name])
    watch = Shown()
    inputs = random_inputs(made.forward, SEED, BLOCKS, CONTEXT, dtype, CPU)
    return run(made.forward, made.weights, inputs, watch), watch.shown


@pytest.mark.parametrize("name", FAMILIES)
def test_hidden_states_are_sglangs(name: str) -> None:
    outputs, shown = ran(name)
    torch.testing.assert_close(shown["context"][0], recorded()[f"{name}/context"], atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(outputs.hidden, recorded()[f"{name}/hidden"], atol=3e-5, rtol=1e-4)
    assert cosine(outputs.hidden, recorded()[f"{name}/hidden"]) > 0.9999999


@pytest.mark.parametrize("dtype, least", [(torch.bfloat16, 0.999), (torch.float16, 0.9999)])
@pytest.mark.parametrize("name", FAMILIES)
def test_narrow_dtypes_stay_near(name: str, dtype: torch.dtype, least: float) -> None:
    assert cosine(ran(name, dtype)[0].hidden, recorded()[f"{name}/hidden"]) > least


def test_the_seed_is_sglangs_in_bfloat16() -> None:
    """As served: SGLang's own load, its bfloat16 norms and rotary kernel."""
    _, draft, inputs = case(SEED_DRAFT)
    outputs = run(draft.forward, draft.weights, in_dtype(inputs, torch.bfloat16), Watch())
    assert cosine(outputs.hidden, recorded()[f"{SEED_DRAFT}/hidden"]) > 0.9998
    agreed = outputs.tokens == recorded()[f"{SEED_DRAFT}/tokens"]
    assert agreed.float().mean() > 0.8


@pytest.mark.parametrize("name", FAMILIES)
def test_tokens_are_sglangs(name: str) -> None:
    assert ran(name)[0].tokens.tolist() == recorded()[f"{name}/tokens"].tolist()


@pytest.mark.parametrize("name", [name for name in FAMILIES if name.startswith("dflash2")])
def test_the_selectors_lattice_is_sglangs(name: str) -> None:
    outputs, shown = ran(name)
    assert outputs.candidate_ids.tolist() == recorded()[f"{name}/ids"].tolist()
    torch.testing.assert_close(outputs.candidate_logits, recorded()[f"{name}/logits"], atol=3e-5, rtol=1e-4)
    torch.testing.assert_close(shown["selector"][0], recorded()[f"{name}/scores"], atol=3e-5, rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name.startswith("dspark")])
def test_the_markov_steps_are_sglangs(name: str) -> None:
    steps = torch.stack(ran(name)[1]["markov"], dim=1)
    torch.testing.assert_close(steps, recorded()[f"{name}/steps"], atol=3e-5, rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name.startswith("lilicorr")])
def test_the_lattice_of_lilicorr_is_sglangs(name: str) -> None:
    outputs, shown = ran(name)
    assert outputs.candidate_ids.tolist() == recorded()[f"{name}/ids"].tolist()
    (scores,) = shown["lilicorr"]
    torch.testing.assert_close(scores[:, 0, 0], recorded()[f"{name}/start"], atol=3e-5, rtol=1e-4)
    torch.testing.assert_close(scores[:, 1:], recorded()[f"{name}/pairs"], atol=3e-5, rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name.startswith("domino")])
def test_a_small_pool_of_domino_is_sglangs(name: str) -> None:
    made = draft_of(FAMILIES[name])
    assert isinstance(made.forward.head, Domino)
    forward = replace(made.forward, head=replace(made.forward.head, pool=POOL))
    inputs = random_inputs(forward, SEED, BLOCKS, CONTEXT, torch.float32, CPU)
    pooled = recorded()[f"{name}/pooled"]
    assert run(forward, made.weights, inputs, Watch()).tokens.tolist() == pooled.tolist()


def test_a_small_pool_matters() -> None:
    """Else the recorded tokens would not tell a pool from none."""
    names = [name for name in FAMILIES if name.startswith("domino")]
    assert any(not torch.equal(recorded()[f"{name}/pooled"], recorded()[f"{name}/tokens"]) for name in names)


@pytest.mark.parametrize("count", [4, len(ROPE_POSITIONS)])
@pytest.mark.parametrize("name", ROPES)
def test_rotary_embeddings_are_sglangs(name: str, count: int) -> None:
    config = draft("DFlashDraftModel")
    del config["rope_parameters"]
    if ROPES[name]:
        config["rope_parameters"] = {"rope_theta": 10000.0, **ROPES[name]}
        config["partial_rotary_factor"] = ROPES[name].get("partial_rotary_factor", 1.0)
    rope = rope_of(read_rope(config, HEAD_SIZE), HEAD_SIZE)
    positions = torch.tensor(ROPE_POSITIONS)
    heads = random_weight("heads", (len(positions), 2 * HEAD_SIZE)).unflatten(-1, (2, HEAD_SIZE))
    turned = rotate(rope, positions[:count], heads[:count]).flatten(-2)
    torch.testing.assert_close(turned, recorded()[f"rope/{name}/{count}"], atol=3e-4, rtol=1e-4)
