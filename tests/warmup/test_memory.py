"""Holes and what stands in them, mapped files, reads on demand, files that are gone."""

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from materialize import materialize, write_zeros
from parity.case import FIXTURES
from real_values import materialize_real

from dflash_audit.engine_run import Conditions
from dflash_audit.engines import engine
from dflash_audit.errors import Unreadable
from dflash_audit.loadplan import Copy, Fill, LoadPlan, Slot
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.sources.disk import read_path
from dflash_audit.tree import Module, Modules, Parameter

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.warmup

from dflash_audit.warmup.memory import REST, Memory  # noqa: E402

MAPS = Path("/proc/self/maps")

HandFill = tuple[str, str, list[int], str | int | None, tuple[Copy, ...]]


def plan_of(folder: Path, name: str = "sglang-next") -> LoadPlan:
    plan = engine(name).replay(read_path(folder), Conditions()).plan
    assert plan is not None
    return plan


def memory_of(case: str, folder: Path, name: str = "sglang-next") -> Memory:
    materialize_real(FIXTURES / case, folder)
    return Memory(plan_of(folder, name), folder, "cpu")


def by_hand(
    folder: Path,
    module: Module,
    fills: Sequence[HandFill],
) -> Memory:
    """A memory of one module, by fills of (tensor, dtype, shape, shard, copies); the tensors are zeros."""
    write_zeros(folder / "model.safetensors", {name: (dtype, shape) for name, dtype, shape, _, _ in fills})
    (parameter,) = module.parameters
    slot = Slot(f"{module.name}.{parameter.name}", module, parameter, 1)
    plan = LoadPlan({slot.name: slot}, Modules({module.name: module}), ())
    for name, dtype, shape, shard, copies in fills:
        tensor = Tensor(name, dtype, tuple(shape), "model.safetensors")
        plan.fill(tensor, Fill(slot, shard, "float32", copies))
    return Memory(plan, folder, "cpu")


@pytest.mark.parametrize(
    "dtype",
    "bfloat16 float16 float32 float64 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz"
    " float8_e8m0fnu".split(),
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 4)])
def test_floats_are_poisoned_with_nan(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    memory = by_hand(tmp_path, Module("m", "Linear", (Parameter("p", shape, dtype),)), [])
    held = memory.parameter("m.p")
    assert held.dtype == getattr(torch, dtype) and held.shape == shape
    assert held.float().isnan().all()
    assert memory.holes("m.p") == ("all",)


@pytest.mark.parametrize(
    "dtype, number",
    [
        ("int8", -91),
        ("uint8", 165),
        ("int16", -23131),
        ("int32", -1515870811),
        ("int64", -6510615555426900571),
    ],
)
@pytest.mark.parametrize("shape", [(), (2, 4)])
def test_integers_are_poisoned_with_a_pattern(
    dtype: str, number: int, shape: tuple[int, ...], tmp_path: Path
) -> None:
    memory = by_hand(tmp_path, Module("m", "Linear", (Parameter("p", shape, dtype),)), [])
    assert (memory.parameter("m.p") == number).all()


def test_a_default_stands_where_nothing_came(tmp_path: Path) -> None:
    scale = Parameter("p", (3,), "float32", defaulted=True, default=1.0)
    fill: HandFill = ("t", "F32", [], "k", (Copy(((1, 1),), ((0, 1),)),))
    memory = by_hand(tmp_path, Module("qkv_proj", "QKVParallelLinear", (scale,)), [fill])
    assert memory.parameter("qkv_proj.p").tolist() == [1.0, 0.0, 1.0]
    assert memory.holes("qkv_proj.p") == ()


def test_a_missing_shard_is_a_hole(tmp_path: Path) -> None:
    memory = memory_of("cases/missing-dflash1-layers_1_self_attn_k_proj_weight", tmp_path)
    name = "layers.1.self_attn.qkv_proj.weight"
    config = json.loads((tmp_path / "config.json").read_text())
    q = config["num_attention_heads"] * config["head_dim"]
    k = config["num_key_value_heads"] * config["head_dim"]
    assert memory.holes(name) == ("k",)
    assert memory.holes("layers.0.self_attn.qkv_proj.weight") == ()
    held = memory.parameter(name)
    assert held[q : q + k].isnan().all()
    assert held[:q].isfinite().all() and held[q + k :].isfinite().all()


def test_a_part_that_a_whole_tensor_leaves_out_is_a_hole(tmp_path: Path) -> None:
    scales = Module("qkv_proj", "QKVParallelLinear", (Parameter("p", (3,), "float32"),))
    memory = by_hand(tmp_path, scales, [("t", "F32", [1], None, (Copy(((0, 1),), ((0, 1),)),))])
    assert memory.holes("qkv_proj.p") == (REST,)
    assert memory.parameter("qkv_proj.p").isnan().tolist() == [False, True, True]


def test_overlapping_parts_do_not_hide_a_hole(tmp_path: Path) -> None:
    """Their numbers add up to those of the parameter, but one is left out."""
    whole = Module("m", "Linear", (Parameter("p", (2, 4), "float32"),))
    copies = (Copy(((0, 2), (0, 2)), None), Copy(((0, 2), (1, 2)), None))
    memory = by_hand(tmp_path, whole, [("t", "F32", [1], None, copies)])
    assert memory.holes("m.p") == (REST,)
    assert memory.parameter("m.p")[0].isnan().tolist() == [False, False, False, True]


@pytest.mark.skipif(not MAPS.exists(), reason="asks the system what is mapped")
def test_whole_tensors_are_the_mapped_file(tmp_path: Path) -> None:
    memory = memory_of("cases/dense-dflash2", tmp_path)
    mapped, fused = "fc.weight", "layers.0.self_attn.qkv_proj.weight"
    assert memory.parameter(mapped).data_ptr() == memory.parameter(mapped).data_ptr()
    assert _mapping(memory.parameter(mapped).data_ptr()).endswith("model.safetensors")
    assert not _mapping(memory.parameter(fused).data_ptr()).endswith("model.safetensors")


@pytest.mark.skipif(not MAPS.exists(), reason="asks the system what is mapped")
def test_a_cast_is_no_mapped_file(tmp_path: Path) -> None:
    memory = memory_of("cases/dtype-fp32", tmp_path)
    held = memory.parameter("norm.weight")
    assert held.dtype is torch.bfloat16
    assert not _mapping(held.data_ptr()).endswith("model.safetensors")


def test_parameters_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    memory = memory_of("cases/ct-dflash2-w4a16_all", tmp_path)
    stored = memory.of_module("layers.0.self_attn.qkv_proj")
    assert set(stored) == {"weight_packed", "weight_scale", "weight_shape"}
    assert "weight_packed" in stored and "weight" not in stored and stored.get("bias") is None
    assert stored.read == set()
    assert stored["weight_shape"].shape == (2,)
    assert stored.read == {"layers.0.self_attn.qkv_proj.weight_shape"}


def test_nothing_is_opened_before_it_is_needed(tmp_path: Path) -> None:
    materialize(FIXTURES / "cases/dense-dflash1", tmp_path)
    plan = plan_of(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    memory = Memory(plan, tmp_path, "cpu")
    with pytest.raises(Unreadable, match=r"model\.safetensors"):
        memory.parameter("fc.weight")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _empty(path: Path) -> None:
    write_zeros(path, {})


def _cast(path: Path) -> None:
    write_zeros(path, {"fc.weight": ("F16", [64, 192])})


@pytest.mark.parametrize("spoil", [_cut, _empty, _cast])
def test_a_file_that_is_not_what_the_plan_read(spoil: Any, tmp_path: Path) -> None:
    materialize(FIXTURES / "cases/dense-dflash1", tmp_path)
    plan = plan_of(tmp_path)
    spoil(tmp_path / "model.safetensors")
    with pytest.raises(Unreadable) as raised:
        Memory(plan, tmp_path, "cpu").parameter("fc.weight")
    assert "fc.weight" in raised.value.message


@pytest.mark.parametrize("case", ["cases/ct-dflash2-w8a16_seed", "published/qwen3.8-27b-dflash2"])
def test_a_plan_travels_small(case: str, tmp_path: Path) -> None:
    plan = plan_of(materialize(FIXTURES / case, tmp_path))
    sent = pickle.dumps(plan)
    assert pickle.loads(sent) == plan
    assert len(sent) < 64 * 2**10


def _mapping(address: int) -> str:
    """The line of /proc/self/maps that an address lies in."""
    lines = MAPS.read_text().splitlines()
    for line in lines:
        begin, end = (int(part, 16) for part in line.split()[0].split("-"))
        if begin <= address < end:
            return line
    raise AssertionError(address)
