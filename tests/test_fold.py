"""Folding of names."""

import pytest

from dflash_audit.fold import fold, ranges, title


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
        ([], ""),
    ],
)
def test_title(names: list[str], folded: str) -> None:
    assert title(names) == folded


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
