"""How the reference goes through a draft: what it asks for, what it shows, what it survives."""

from dataclasses import replace
from typing import Any

import pytest
from reference.families import BLOCKS, CONTEXT, FAMILIES, SEED

pytest.importorskip("torch")

import torch
from reference.random_draft import Draft, RandomWeights, draft_of

from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.reference import Inputs, Outputs, random_inputs, run
from dflash_audit.warmup.watch import Watch

pytestmark = pytest.mark.warmup


def inputs_of(draft: Draft) -> Inputs:
    return random_inputs(draft.forward, SEED, BLOCKS, CONTEXT, torch.float32, torch.device("cpu"))


def run_with(draft: Draft, watch: Watch | None = None, **changed: Any) -> Outputs:
    return run(draft.forward, draft.weights, replace(inputs_of(draft), **changed), watch or Watch())


def poisoned(draft: Draft, name: str) -> Draft:
    tensors = {**draft.weights.tensors, name: torch.full_like(draft.weights.tensors[name], torch.nan)}
    return Draft(draft.forward, draft.tree, RandomWeights(tensors))


def reaches(outputs: Outputs) -> bool:
    numbers = (outputs.hidden, outputs.candidate_logits)
    return not all(bool(torch.isfinite(part).all()) for part in numbers)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_parameter_of_the_tree_is_asked_for(name: str) -> None:
    draft = draft_of(FAMILIES[name])
    run_with(draft)
    assert draft.weights.read == set(draft.weights.tensors)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_layers_linears_are_fetched_once_and_layer_after_layer(name: str) -> None:
    draft = draft_of(FAMILIES[name])
    run_with(draft)
    linears = [asked for asked in draft.weights.linears if asked.startswith("layers.")]
    assert len(linears) == len(set(linears))
    assert linears == sorted(linears, key=lambda asked: int(asked.split(".")[1]))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_watch_sees_every_module_with_parameters(name: str) -> None:
    draft = draft_of(FAMILIES[name])
    seen = Seen()
    run_with(draft, seen)
    assert seen.modules == {module.name for _, module, _ in draft.tree.parameters()}


@pytest.mark.parametrize(
    "name, last",
    [
        ("dflash", []),
        ("dflash2", ["selector"]),
        ("dspark-rnn", ["markov"]),
        ("domino", ["domino"]),
        ("lilicorr", ["lilicorr"]),
    ],
)
def test_stages(name: str, last: list[str]) -> None:
    watch = Watch()
    run_with(draft_of(FAMILIES[name]), watch)
    stages = [stage.name for stage in watch.stages]
    assert stages == ["context", "layer 0", "layer 1", "norm", "candidates", *last]
    assert all(stage.largest is not None and stage.finite for stage in watch.stages)


@pytest.mark.parametrize("name", FAMILIES)
def test_poison_in_any_parameter_shows_and_does_not_crash(name: str) -> None:
    """In an output, or in a stage of a head whose numbers become tokens."""
    draft = draft_of(FAMILIES[name])
    for parameter in draft.weights.tensors:
        watch = Watch()
        outputs = run_with(poisoned(draft, parameter), watch)
        assert reaches(outputs) or not all(stage.finite for stage in watch.stages), parameter
        assert not outputs.out_of_range


@pytest.mark.parametrize("name", FAMILIES)
def test_mended_poison_names_its_module(name: str) -> None:
    draft = draft_of(FAMILIES[name])
    for parameter, module, _ in draft.tree.parameters():
        watch = Watch(mend=True)
        outputs = run_with(poisoned(draft, parameter), watch)
        assert {*watch.sources} == {module.name}, parameter
        assert not reaches(outputs)


@pytest.mark.parametrize("token", [-1, 96, 10**6])
def test_an_id_outside_a_table_is_told_and_indexes_nothing(token: int) -> None:
    draft = draft_of(FAMILIES["dflash2"])
    anchors = inputs_of(draft).anchors.clone()
    anchors[1] = token
    outputs = run_with(draft, anchors=anchors)
    tables = ("the target's embedding", "candidate_selector.predecessor_codebook")
    assert outputs.out_of_range == tuple((table, token, 96) for table in tables)


def test_the_mask_of_a_draft_with_an_embedding_must_be_a_row_of_it() -> None:
    config = FAMILIES["nemotron"]
    masked = {**config, "dflash_config": {**config["dflash_config"], "mask_token_id": 5000}}
    draft = draft_of(masked)
    outputs = run_with(draft)
    rows = draft.weights.tensors["embed_tokens.weight"].shape[0]
    assert outputs.out_of_range == (("embed_tokens.weight", 5000, rows),)


def test_the_mask_of_a_borrowed_embedding_is_a_row_of_the_stand_in() -> None:
    config = FAMILIES["dflash"]
    masked = {**config, "dflash_config": {**config["dflash_config"], "mask_token_id": 5000}}
    assert run_with(draft_of(masked)).out_of_range == ()


def test_without_the_guard_an_id_outside_a_table_indexes() -> None:
    draft = draft_of(FAMILIES["dflash2"])
    inputs = inputs_of(draft)
    outside = replace(inputs, anchors=inputs.anchors + inputs.embedding.shape[0])
    with pytest.raises(IndexError):
        run(draft.forward, draft.weights, outside, Watch(), guard=False)


@pytest.mark.parametrize("name", ["dflash", "dflash-window", "dflash2", "domino", "lilicorr", "dspark-gated"])
def test_requests_do_not_see_each_other(name: str) -> None:
    """A request alone gives what it gives among others."""
    draft = draft_of(FAMILIES[name])
    together, inputs = run_with(draft), inputs_of(draft)
    for request in range(BLOCKS):
        mine = slice(request, request + 1)
        length = int(inputs.lengths[request])
        alone = run_with(
            draft,
            anchors=inputs.anchors[mine],
            lengths=inputs.lengths[mine],
            features=inputs.features[:length],
        )
        torch.testing.assert_close(alone.hidden, together.hidden[mine], atol=1e-5, rtol=1e-4)
        assert torch.equal(alone.tokens, together.tokens[mine])


def test_a_block_of_an_anchor_alone_proposes_nothing() -> None:
    for name in ("dflash", "dflash2"):
        config = FAMILIES[name]
        single = {**config, "dflash_config": {**config["dflash_config"], "block_size": 1}}
        outputs = run_with(draft_of(single))
        assert outputs.hidden.shape[1] == 1
        assert outputs.tokens.shape == (BLOCKS, 0)


def test_inputs_come_from_the_seed() -> None:
    draft = draft_of(FAMILIES["dflash"])
    inputs = inputs_of(draft)
    assert torch.equal(inputs.features, inputs_of(draft).features)
    other = random_inputs(draft.forward, SEED + 1, BLOCKS, CONTEXT, torch.float32, torch.device("cpu"))
    assert not torch.equal(inputs.features, other.features)
    assert inputs.lengths.tolist() == [6, 13, 20]
    assert int(inputs.anchors.max()) < inputs.embedding.shape[0] == 96


def test_what_a_linear_does_to_its_input_is_done_to_the_contexts_keys_too() -> None:
    """Keys and values of the context come from some of the rows of a linear that rounds its input."""
    draft = draft_of(FAMILIES["dflash"])
    plain = run_with(draft)
    rounding = Rounding(draft.weights.tensors)
    rounded = run_with(Draft(draft.forward, draft.tree, rounding))
    assert rounding.shapes == {(CONTEXT, 64), (BLOCKS, 6, 64)}
    assert not torch.equal(plain.hidden, rounded.hidden)


class Seen(Watch):
    """A watch that keeps the names of the modules that it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.modules: set[str] = set()

    def module(self, name: str, output: torch.Tensor) -> torch.Tensor:
        self.modules.add(name)
        return super().module(name, output)


class Rounding(RandomWeights):
    """Weights whose query, key and value linears round their input; `shapes` are those of the inputs."""

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        super().__init__(tensors)
        self.shapes: set[tuple[int, ...]] = set()

    def linear(self, module_name: str) -> DenseLinear:
        linear = super().linear(module_name)
        return replace(linear, round_input=self._round) if module_name.endswith("qkv_proj") else linear

    def _round(self, x: torch.Tensor) -> torch.Tensor:
        self.shapes.add(tuple(x.shape))
        return (x * 4).round() / 4
