"""The forward pass as SGLang reads it from a config: keys, defaults and precedence."""

import math
from typing import Any

import pytest

from dflash_audit.engines.sglang.forward import forward_of
from dflash_audit.forward import (
    Convolution,
    Domino,
    Forward,
    Layer,
    LiLiCorr,
    Markov,
    Selector,
    Swiglu,
)
from dflash_audit.refusal import NotModelled, Refused

CONFIG: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "vocab_size": 96,
    "dflash_config": {"target_layer_ids": [1, 4], "block_size": 6},
}
DFLASH, DFLASH2, DSPARK = "DFlashDraftModel", "DFlash2DraftModel", "Qwen3DSparkModel"


def read(draft_class: str = DFLASH, inner: dict[str, Any] | None = None, **keys: Any) -> Forward:
    """The forward pass of `CONFIG` with `keys`, and with `inner` in its dflash_config."""
    return forward_of(
        {**CONFIG, **keys, "dflash_config": {**CONFIG["dflash_config"], **(inner or {})}}, draft_class
    )


def test_defaults() -> None:
    forward = read()
    assert (forward.eps, forward.gemma_norms, forward.swiglu, forward.convolution) == (
        1e-6,
        False,
        None,
        None,
    )
    assert (forward.taps, forward.rows, forward.first_slot, forward.slots) == (2, 6, 1, 5)
    assert (forward.attention.kv_heads, forward.attention.head_dim) == (4, 16)
    assert (forward.attention.sinks, forward.attention.value_scale, forward.attention.gate) == (
        False,
        None,
        None,
    )
    assert forward.layers == (Layer(None, causal=False),) * 3
    assert (forward.mask_token_id, forward.vocab_size, forward.head) == (None, 96, None)
    assert not (forward.tap_norms or forward.context_norm or forward.own_embedding)


SLIDING, FULL = "sliding_attention", "full_attention"


@pytest.mark.parametrize(
    "keys, layers",
    [
        ({"layer_types": [FULL] * 3}, [Layer(None, False)] * 3),
        ({"layer_types": [FULL] * 3, "is_causal": True}, [Layer(None, True)] * 3),
        # A window counts its own position in the config and not in the engine.
        (
            {"layer_types": [SLIDING, FULL, SLIDING], "sliding_window": 8},
            [Layer(7, True), Layer(None, False), Layer(7, True)],
        ),
        ({"layer_types": [SLIDING] * 3, "sliding_window": 8, "is_causal": False}, [Layer(7, False)] * 3),
        ({"layer_types": [SLIDING] * 3, "sliding_window": 1}, [Layer(None, True)] * 3),
        ({"layer_types": [SLIDING] * 3, "sliding_window": 0}, [Layer(None, True)] * 3),
        ({"is_causal": True}, [Layer(None, False)] * 3),
    ],
)
def test_what_layers_see(keys: dict[str, Any], layers: list[Layer]) -> None:
    assert read(**keys).layers == tuple(layers)


def test_sliding_layers_without_a_window_are_refused() -> None:
    with pytest.raises(Refused, match="sliding_window"):
        read(layer_types=[SLIDING] * 3)


@pytest.mark.parametrize(
    "inner, head",
    [
        ({}, Selector(8, 4)),
        ({"output_multiplier": 2, "final_logit_softcapping": 30}, Selector(8, 4, 2.0, 30.0)),
        ({"final_logit_softcapping": -1.0}, Selector(8, 4)),
        ({"final_logit_softcapping": None}, Selector(8, 4)),
    ],
)
def test_selector(inner: dict[str, Any], head: Selector) -> None:
    assert read(DFLASH2, {"selector_rank": 8, "selector_top_k": 4, **inner}).head == head


def test_a_selector_is_looked_for_before_a_projector() -> None:
    inner = {"selector_rank": 8, "selector_top_k": 4, **DOMINO}
    assert read(DFLASH2, inner).head == Selector(8, 4)


DOMINO: dict[str, Any] = {
    "projector_type": "domino",
    "gru_hidden_dim": 24,
    "emb_dim": 16,
    "shift_label": False,
    "pure_draft_prefix_len": 1,
}


def test_domino() -> None:
    assert read(inner=DOMINO).head == Domino(24, 16, shift_label=False, pool=2048)


MARKOV: dict[str, Any] = {"markov_rank": 12, "markov_head_type": "gated"}


@pytest.mark.parametrize(
    "keys, rows, first_slot",
    [
        ({}, 6, 0),
        ({"sample_from_anchor": False}, 7, 1),
        ({"dspark_block_size": 4}, 4, 0),
        ({"dflash_config": {"target_layer_ids": [1]}}, 7, 0),
        ({"dflash_config": {"target_layer_ids": [1]}, "block_size": 3}, 3, 0),
    ],
)
def test_the_block_of_dspark(keys: dict[str, Any], rows: int, first_slot: int) -> None:
    forward = forward_of({**CONFIG, **MARKOV, **keys}, DSPARK)
    assert (forward.rows, forward.first_slot) == (rows, first_slot)


def test_markov() -> None:
    assert read(DSPARK, **MARKOV).head == Markov("gated", 12)


@pytest.mark.parametrize(
    "draft_class, keys, inner, mask",
    [
        (DFLASH, {"mask_token_id": 5}, {}, 5),
        (DFLASH, {"mask_token_id": 5}, {"mask_token_id": 6}, 6),
        (DSPARK, {"mask_token_id": 5, "dspark_noise_token_id": 7, **MARKOV}, {"mask_token_id": 6}, 7),
        (DSPARK, {"mask_token_id": 5, **MARKOV}, {"mask_token_id": 6}, 6),
    ],
)
def test_the_mask(draft_class: str, keys: dict[str, Any], inner: dict[str, Any], mask: int) -> None:
    assert read(draft_class, inner, **keys).mask_token_id == mask


@pytest.mark.parametrize("own, hidden", [(0, 64), (32, 32)])
def test_lilicorr(own: int, hidden: int) -> None:
    sizes = {"candidate_topk": 4, "hidden_size": own, "num_layers": 2, "num_heads": 2, "mlp_ratio": 2.0}
    more = {"factor_dim": 16, "vector_eps": 1e-6, "logit_scale": 3.0}
    inner = {f"lilicorr_{key}": value for key, value in {**sizes, **more}.items()}
    expected = LiLiCorr(
        hidden_size=hidden,
        layers=2,
        heads=2,
        top_k=4,
        factor_dim=16,
        vector_eps=1e-6,
        logit_scale=3.0,
        block_size=6,
    )
    assert read("LiLiCorrDraftModel", inner).head == expected


@pytest.mark.parametrize(
    "gating, gate",
    [
        (True, "per-head"),
        ("per-head", "per-head"),
        ("per-element", "per-element"),
        (False, None),
        (None, None),
    ],
)
def test_lagunas_gate(gating: Any, gate: str | None) -> None:
    forward = read("DFlashLagunaForCausalLM", gating=gating)
    assert (forward.attention.gate, forward.tap_norms, forward.context_norm) == (gate, True, True)
    assert read(gating=gating).attention.gate is None


def test_sinks_scale_activation_and_convolutions() -> None:
    inner = {"attention_sink_bias": True, "attention_value_scale": 1}
    inner |= {"conv_kernel_size": 3, "conv_group_size": 16}
    forward = read(inner=inner, hidden_act="swigluoai", swiglu_alpha=1.7, swiglu_limit=7)
    assert (forward.attention.sinks, forward.attention.value_scale) == (True, 1.0)
    assert forward.swiglu == Swiglu(1.7, 7.0)
    assert forward.convolution == Convolution(3, 16, 6)
    # Only a Nemotron draft reads the key at the top.
    assert not read(attention_sink_bias=True).attention.sinks


NEMOTRON: dict[str, Any] = {
    "architectures": [DFLASH],
    "has_embed_tokens": True,
    "eagle_aux_hidden_state_layer_ids": [2, 5],
    "quantization_config": {"quant_algo": "W4A16_NVFP4"},
}


def test_nemotron() -> None:
    forward = read(inner={"sample_from_anchor": False}, attention_sink_bias=True, **NEMOTRON)
    assert forward.own_embedding
    assert forward.attention.sinks


def test_rope_of_a_part_of_a_head() -> None:
    rope = read(partial_rotary_factor=0.25, rope_is_neox_style=False, rope_theta=100.0).attention.rope
    assert (rope.rotary_dim, rope.neox) == (4, False)
    assert list(rope.frequencies.inverse) == pytest.approx([1.0, 0.1])
    assert rope.frequencies.magnitude == 1.0


def test_longrope_has_two_sets_of_frequencies() -> None:
    scaling = {
        "rope_type": "longrope",
        "rope_theta": 100.0,
        "rope_dim": 4,
        "short_factor": [1.0, 2.0],
        "long_factor": [4.0, 5.0],
        "original_max_position_embeddings": 64,
    }
    rope = read(rope_parameters=scaling, max_position_embeddings=4096).attention.rope
    assert rope.long is not None and rope.long.after == 64
    assert list(rope.frequencies.inverse) == pytest.approx([1.0, 0.05])
    assert list(rope.long.frequencies.inverse) == pytest.approx([0.25, 0.02])
    magnitudes = [rope.frequencies.magnitude, rope.long.frequencies.magnitude]
    # 64 times the original 64 positions: sqrt(1 + 1).
    assert magnitudes == pytest.approx([math.sqrt(2)] * 2)


@pytest.mark.parametrize("theta, fast", [(0, math.inf), (1e308, 0.0)])
def test_a_base_that_gives_no_frequencies_is_none_of_pythons_errors(theta: float, fast: float) -> None:
    rope = read(rope_theta=theta, head_dim=4).attention.rope
    assert list(rope.frequencies.inverse) == pytest.approx([1.0, fast], abs=1e-150)


def test_a_class_that_is_not_replayed() -> None:
    with pytest.raises(NotModelled):
        read("DeepseekV4DSparkModel")
