"""What a warm-up does on a GPU, held against the CPU: `pytest -m gpu tests/warmup` on a machine with one.

The package need not be installed there: it is enough that it is on PYTHONPATH.
"""

import os
import re
import uuid
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from reference.families import BLOCKS, CONTEXT, FAMILIES, SEED
from test_cli import FIXTURES, report
from unpack.layers import quantized

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]

from reference.random_draft import RandomWeights, cosine, draft_of  # noqa: E402
from unpack.record import RECORDS, Record  # noqa: E402

from dflash_audit.tree import Module, Parameter  # noqa: E402
from dflash_audit.warmup.reference import Inputs, Outputs, random_inputs, run  # noqa: E402
from dflash_audit.warmup.unpack import unpack  # noqa: E402
from dflash_audit.warmup.watch import Watch  # noqa: E402

CPU, GPU = torch.device("cpu"), torch.device("cuda")
ENGINES = ("sglang-0.5.23", "sglang-next")
GROUP = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
FP4 = {
    "quant_method": "compressed-tensors",
    "format": "nvfp4-pack-quantized",
    "config_groups": {"all": {"targets": ["Linear"], "weights": GROUP, "input_activations": GROUP}},
}
MXFP8 = {"quant_method": "mxfp8", "activation_scheme": "dynamic"}


def warmed(source: Path, *words: str) -> list[Any]:
    """The report's warm-ups of both engines on the GPU, by the project's own arithmetic."""
    engines = [f"--engine={name}" for name in ENGINES]
    options = (*engines, "--device", "cuda", "--backend", "reference")
    said = report(str(source), "--warmup", *options, *words)
    assert [warmup["engine"] for warmup in said["warmup"]] == [*ENGINES]
    assert all(warmup["device"].startswith("cuda") for warmup in said["warmup"])
    warmups: list[Any] = said["warmup"]
    return warmups


def processes_with(variable: str) -> list[str]:
    """The processes that inherited this variable, `NAME=value`, from whoever started them."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if variable.encode() in environment.read_bytes().split(b"\0"):
                found.append(environment.parent.name)
        except OSError:  # it has ended, or is another user's
            continue
    return found


def test_the_dense_seed_passes_on_both_engines() -> None:
    for warmup in warmed(FIXTURES / "seed-bf16"):
        assert (warmup["verdict"], warmup["death"], warmup["reached"]) == ("pass", None, [])
        assert all(stage["finite"] for stage in warmup["stages"])
        assert warmup["peak_bytes"] > 0


def test_the_quantized_seed_fails_on_the_release_alone() -> None:
    pytest.importorskip("compressed_tensors")
    release, following = warmed(FIXTURES / "seed-w8a16")
    assert (following["verdict"], following["death"], following["reached"]) == ("pass", None, [])
    assert (release["verdict"], release["death"]) == ("fail", None)
    unfilled = {name for source in release["sources"] for name in source["unfilled"]}
    assert {"fc.weight", "layers.0.self_attn.qkv_proj.weight_packed"} <= unfilled


def test_an_assert_on_the_device_is_told_and_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    begun_with = Path("/proc/self/environ").read_text().partition("\0")[0]
    assert str(os.getpid()) in processes_with(begun_with)
    marker = uuid.uuid4().hex
    monkeypatch.setenv("DFLASH_AUDIT_TEST", marker)
    warmups = warmed(FIXTURES / "seed-bf16", "--provoke")
    assert processes_with(f"DFLASH_AUDIT_TEST={marker}") == []
    for warmup in warmups:
        assert (warmup["verdict"], warmup["survived"]) == ("pass", False)
        assert (warmup["provoked"]["kind"], warmup["provoked"]["by_draft"]) == ("assert", True)
        assert warmup["provoked"]["stage"] == "context"  # whose first rows are the anchors'
        # Of two kernels in PyTorch: `srcIndex < srcSelectDimSize`, `ind < ind_dim_size`.
        assert re.search(r"srcIndex < |ind < ", warmup["provoked"]["detail"])
    torch.zeros(1, device=GPU)  # this process has the card as before


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in RECORDS])
def test_unpacked_as_on_the_cpu(path: Path) -> None:
    record = Record(path)
    if record.scheme.startswith("CompressedTensors"):
        pytest.importorskip("compressed_tensors")
    same_linear(record.module, record.stored, record.x)


@pytest.mark.parametrize(
    ("method", "config", "library"),
    [("compressed-tensors", FP4, True), ("mxfp8", MXFP8, False)],
    ids=["ct-w4a4-fp4", "mxfp8"],
)
def test_a_scheme_of_newer_cards_unpacked_as_on_the_cpu(
    method: str, config: dict[str, Any], library: bool
) -> None:
    if library:
        pytest.importorskip("compressed_tensors")
    module = quantized(method, config, inputs=256, outputs=(128,), capability=100)
    generator = torch.Generator().manual_seed(7)
    stored = {parameter.name: filled(parameter, generator) for parameter in module.parameters}
    same_linear(module, stored, torch.randn((5, 256), generator=generator).bfloat16())


def filled(parameter: Parameter, generator: Any) -> Any:
    """Random numbers: bytes of a weight, exponents about 1 of a scale in bytes, else about 1."""
    dtype = getattr(torch, parameter.dtype)
    if dtype == torch.uint8:
        low, high = (120, 134) if "scale" in parameter.name else (0, 256)
        return torch.randint(low, high, parameter.shape, generator=generator).to(dtype)
    return (torch.rand(parameter.shape, generator=generator) + 0.5).to(dtype)


FP8_STEP = 2**-3
"""The distance of two neighbours of e4m3, relative to the lesser."""


def same_linear(module: Module, stored: dict[str, Any], x: Any) -> None:
    """Weights, bias and rounded inputs but for a few that lay between two numbers; what comes out."""
    here = unpack(module, stored)
    there = unpack(module, {name: value.to(GPU) for name, value in stored.items()})
    pairs = [(here.weight, there.weight), (here.bias, there.bias)]
    assert (here.round_input is None) == (there.round_input is None)
    if here.round_input is not None and there.round_input is not None:
        pairs.append((here.round_input(x), there.round_input(x.to(GPU))))
    for cpu, gpu in pairs:
        assert (cpu is None) == (gpu is None)
        if cpu is not None:
            assert gpu.device.type == "cuda"
            # A card divides by a scale with another last bit, which decides which neighbour is nearer.
            torch.testing.assert_close(gpu.cpu(), cpu, rtol=FP8_STEP, atol=0)
            assert float((gpu.cpu() != cpu).float().mean()) < 0.05
    assert cosine(there(x.to(GPU)).float().cpu(), here(x).float()) > 0.9999


def moved(inputs: Inputs, device: Any) -> Inputs:
    values = {field.name: getattr(inputs, field.name) for field in fields(inputs)}
    return replace(
        inputs,
        **{name: value.to(device) for name, value in values.items() if isinstance(value, torch.Tensor)},
    )


def ran(name: str, dtype: Any, device: Any) -> tuple[Outputs, Watch]:
    """A dense draft of a family, its weights in float32."""
    draft = draft_of(FAMILIES[name])
    weights = RandomWeights({key: value.to(device) for key, value in draft.weights.tensors.items()})
    inputs = random_inputs(draft.forward, SEED, BLOCKS, CONTEXT, dtype, CPU)
    watch = Watch()
    return run(draft.forward, weights, moved(inputs, device), watch), watch


@pytest.mark.parametrize(
    ("dtype", "least"), [("float32", 0.999999), ("bfloat16", 0.999), ("float16", 0.9999)]
)
@pytest.mark.parametrize("name", FAMILIES)
def test_the_reference_computes_as_on_the_cpu(name: str, dtype: str, least: float) -> None:
    here, here_seen = ran(name, getattr(torch, dtype), CPU)
    there, there_seen = ran(name, getattr(torch, dtype), GPU)
    assert there.hidden.device.type == "cuda"
    assert cosine(there.hidden.float().cpu(), here.hidden.float()) > least
    assert [stage.name for stage in there_seen.stages] == [stage.name for stage in here_seen.stages]
    assert all(stage.finite for stage in there_seen.stages)
    if dtype == "float32":
        assert there.tokens.tolist() == here.tokens.tolist()
        assert there.candidate_ids.tolist() == here.candidate_ids.tolist()
