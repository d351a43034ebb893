"""Which layouts are told to engines that disagree: what can be stored, and nothing else."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from materialize import copy_beside, write_zeros
from parity.case import FIXTURES

from dflash_audit.auditing import Request, audit
from dflash_audit.engines import Engine, engine
from dflash_audit.fixing import agreement
from dflash_audit.fixing.agreement import REWRITES
from dflash_audit.sources.checkpoint import Checkpoint, Tensor
from dflash_audit.sources.tensors import Tensors

LAGUNA, BELOW_MODEL = "10-laguna-split-qkv", "07-prefixed-names"
WITHOUT_MODEL, ONE_QKV = 'Take "model." off', "as one qkv_proj"
ATTENTION = "layers.0.self_attn."

Stored = dict[str, tuple[str, list[int]]]


def hint(case: str, scratch: Path, more: Stored) -> str:
    """What engines that disagree are told of the case's draft with other tensors, or more of them."""
    folder, draft = FIXTURES / "differences" / case, scratch / "draft"
    copy_beside(folder, draft)
    tensors: Stored = json.loads((folder / "tensors.json").read_text())
    write_zeros(draft / "model.safetensors", tensors | more)
    found = audit(Request(str(draft), frozenset({"sglang-next"}))).findings
    (told,) = (each.hint for each in found if each.rule == "engines-disagree")
    return str(told)


def rewritten(advice: str, tensors: Sequence[Tensor]) -> list[tuple[str, str, tuple[int, ...]]]:
    (rewrite,) = (rewrite for says, rewrite in REWRITES if advice in says)
    return [tensor[:3] for tensor in rewrite(Tensors(tensors))]


def qkv(*kinds: tuple[str, tuple[int, ...]]) -> list[Tensor]:
    return [
        Tensor(f"{ATTENTION}{shard}_proj.weight", dtype, shape, "f")
        for shard, (dtype, shape) in zip("qkv", kinds, strict=True)
    ]


def test_three_alike_become_one() -> None:
    parts = qkv(("F16", (4, 8)), ("F16", (2, 8)), ("F16", (3, 8)))
    assert rewritten(ONE_QKV, parts[::-1]) == [(f"{ATTENTION}qkv_proj.weight", "F16", (9, 8))]


@pytest.mark.parametrize(
    "kinds",
    [
        (("BF16", (4, 8)), ("F32", (2, 8)), ("BF16", (2, 8))),
        (("BF16", (4, 8)), ("BF16", (2, 9)), ("BF16", (2, 8))),
        (("F8_E4M3", (4, 8)), ("F8_E4M3", (2, 8)), ("F8_E4M3", (2, 8))),
        (("I32", (4, 8)), ("I32", (2, 8)), ("I32", (2, 8))),
        (("BF16", (4,)), ("BF16", (2,)), ("BF16", (2,))),
        (("F6_E2M3", (4, 8)), ("F6_E2M3", (2, 8)), ("F6_E2M3", (2, 8))),
    ],
)
def test_what_cannot_be_one_tensor_stays_three(kinds: Sequence[tuple[str, tuple[int, ...]]]) -> None:
    parts = qkv(*kinds)
    assert rewritten(ONE_QKV, parts) == [part[:3] for part in parts]


def test_of_two_dtypes_no_one_tensor_is_told(tmp_path: Path) -> None:
    assert ONE_QKV in hint(LAGUNA, tmp_path / "alike", {})
    other: Stored = {f"{ATTENTION}k_proj.weight": ("F32", [128, 128])}
    assert ONE_QKV not in hint(LAGUNA, tmp_path / "other", other)


def test_no_tensor_is_given_the_name_of_another(tmp_path: Path) -> None:
    assert WITHOUT_MODEL in hint(BELOW_MODEL, tmp_path / "free", {})
    (rewrite,) = (rewrite for says, rewrite in REWRITES if WITHOUT_MODEL in says)
    for other, collides in (("fc.weight", False), ("norm.weight", True)):
        tensors = Tensors(Tensor(name, "BF16", (128,), "f") for name in ("model.norm.weight", other))
        assert agreement._collide(tensors, Tensors(rewrite(tensors))) is collides


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("midlayer.mlp.up_proj.weight", "layers.0.mlp.up_proj.weight"),
        ("model.midlayer.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight"),
        ("model.layers.1.midlayer.weight", "model.layers.1.midlayer.weight"),
        ("midlayers.weight", "midlayers.weight"),
    ],
)
def test_the_first_layer_is_named_as_the_others_are(name: str, wanted: str) -> None:
    assert rewritten('"midlayer."', [Tensor(name, "BF16", (2, 2), "f")]) == [(wanted, "BF16", (2, 2))]


def test_what_is_asked_of_all_tensors_is_worked_out_once_for_all_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    class Watched:
        def __init__(self, of: Engine) -> None:
            self.of = of

        def replay(self, checkpoint: Checkpoint, conditions: Any) -> Any:
            seen.append(checkpoint.tensors)
            return self.of.replay(checkpoint, conditions)

    monkeypatch.setattr(agreement, "engine", lambda name: Watched(engine(name)))
    hint(BELOW_MODEL, tmp_path, {})
    assert len(seen) > 1
    assert {(type(tensors), id(tensors.remembered)) for tensors in seen} == {
        (Tensors, id(seen[0].remembered))
    }
