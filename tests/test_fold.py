"""Folding of names."""

import pytest

from dflash_audit.fold import fold, kind, ranges, title


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["fc.weight"], "fc.weight"),
        (["layers.0.a.weight", "layers.1.a.weight"], "layers.0-1.a.weight"),
        (["layers.0.a.weight", "layers.2.a.weight", "layers.3.a.weight"], "layers.0,2-3.a.weight"),
        (["layers.10.a", "layers.9.a"], "layers.9-10.a"),
        (["fc.weight_packed", "fc.weight_scale"], "fc.{weight_packed,weight_scale}"),
        (
            [f"layers.{i}.attn.{p}_proj.weight" for i in (0, 1) for p in "qkv"],
            "layers.0-1.attn.{q_proj,k_proj,v_proj}.weight",
        ),
        (["layers.0.a.w", "layers.1.a.w", "layers.0.b.w"], "layers.0-1.a.w, layers.0.b.w"),
        (["a.b.c", "a.x.y"], "a.b.c, a.x.y"),
        (["a", "a.b"], "a, a.b"),
        (["blocks.0.a", "blocks.1.a"], "blocks.{0,1}.a"),
        (["model.layers.3.a.w"], "model.layers.3.a.w"),
        (["experts.0.a", "experts.1.a", "experts.5.a"], "experts.0-1,5.a"),
        (
            [
                f"layers.{i}.mlp.experts.{e}.{p}_proj.w"
                for i in (1, 2)
                for e in range(64)
                for p in ("up", "down")
            ],
            "layers.1-2.mlp.experts.0-63.{up_proj,down_proj}.w",
        ),
        (
            [f"layers.{i}.experts.{e}.w" for i, e in ((1, 0), (1, 1), (2, 1))],
            "layers.1.experts.0-1.w, layers.2.experts.1.w",
        ),
        (["experts.{}.a", "experts.1.a", "my_experts.1.a"], "experts.{}.a, experts.1.a, my_experts.1.a"),
        (["experts.0.a", "experts.00.a"], "experts.{0,00}.a"),
        ([f"layers.{'1' * 5000}.a"], f"layers.{'1' * 5000}.a"),
        ([], ""),
    ],
)
def test_title(names: list[str], folded: str) -> None:
    assert title(names) == folded


def test_kind_is_one_for_all_that_experts_hold() -> None:
    assert kind("layers.1.mlp.experts.7.up_proj") == kind("layers.2.mlp.experts.63.down_proj.weight")
    assert kind("layers.1.mlp.experts.routed_experts") != kind("layers.1.mlp.experts.7.up_proj")
    assert kind("layers.1.mlp.up_proj") != kind("layers.1.mlp.down_proj")


def test_fold_of_experts() -> None:
    names = [f"layers.1.experts.{expert}.{part}.w" for expert in range(3) for part in ("up", "down")]
    assert fold(names) == {
        "layers.1.experts.0-2.up.w": tuple(names[::2]),
        "layers.1.experts.0-2.down.w": tuple(names[1::2]),
    }


def test_fold_keeps_every_name_and_folds_layers_only() -> None:
    names = ["layers.0.a.w", "fc.w", "layers.1.a.w", "layers.1.b.w"]
    assert fold(names) == {
        "layers.0-1.a.w": ("layers.0.a.w", "layers.1.a.w"),
        "fc.w": ("fc.w",),
        "layers.1.b.w": ("layers.1.b.w",),
    }


def test_ranges() -> None:
    assert ranges([]) == ""
    assert ranges([0, 1, 2, 4, 7, 8]) == "0-2,4,7-8"
