"""The warm-up of every recorded draft that loads, its tensors filled with real values.

What it must say is worked out from what the real engine was recorded to leave
unfilled, and from what SGLang's forward pass is known not to read.
"""

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from parity.case import Case, Record, recorded
from parity.expectation import half_filled, shards_of
from real_values import materialize_real
from warmup.casts import without_meaning

from dflash_audit.engines import engine
from dflash_audit.refusal import Refused
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.sources.disk import read_path
from dflash_audit.warmup.events import Teller
from dflash_audit.warmup.job import Job
from dflash_audit.warmup.result import WarmUp

pytestmark = pytest.mark.warmup
torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("compressed_tensors")

from dflash_audit.warmup.reference_pass import reference_pass  # noqa: E402

UNREAD: Final = frozenset(
    (
        # `compressed_tensors_wNa16.py`: built for the loader; `process_weights_after_loading` and `apply`
        # go by the sizes that `create_weights` was given.
        ("CompressedTensorsWNA16", "weight_shape"),
        # `compressed_tensors_w4a16_nvfp4.py`: deleted after the load.
        ("CompressedTensorsW4A16Fp4", "input_global_scale"),
        # `gptq_kernels.py`: only types without a zero point of their own have `qzeros` read, and the types
        # that GPTQ on Marlin takes (`uint4b8`, `uint8b128`) have one.
        ("GPTQMarlinLinearScheme", "qzeros"),
    )
)
"""(scheme, parameter) that SGLang 0.5.23 loads, and never reads on an H200."""

KV_HEADS_OF_QWEN3: Final = 32
"""What transformers' `Qwen3Config` takes where `num_key_value_heads` is left out."""

SEEDS: Final = (0, 1)

TOO_LARGE: Final = "vllm-block-longer-than-a-step"
"""A draft whose block has 100,000 tokens: no machine holds what they attend to."""

DRAFTS = [
    (case, name)
    for case in recorded("cases", "fuzz", "random", "regressions")
    for name, record in case.records.items()
    if record["stage"] is None and record.get("tp", 1) == 1 and name.startswith("sglang-")
    if case.folder.name != TOO_LARGE
]
PARAMS = [
    pytest.param(case, name, id=f"{case.folder.parent.name}/{case.folder.name}-{name}")
    for case, name in DRAFTS
]

Written = tuple[Case, Path, Checkpoint]


@contextmanager
def write(case: Case) -> Iterator[Written]:
    """A case, written out with real values for as long as it is needed."""
    with TemporaryDirectory() as scratch:
        folder = materialize_real(case.folder, Path(scratch) / "draft")
        yield case, folder, read_path(folder)


@pytest.fixture(scope="module")
def written(request: pytest.FixtureRequest) -> Iterator[Written]:
    """Both engines of a case are given the same."""
    with write(request.param) as found:
        yield found


@pytest.mark.parametrize(("written", "name"), PARAMS, indirect=["written"], scope="module")
def test_what_is_unfilled_and_read_fails_and_is_named(written: Written, name: str) -> None:
    check(written, name, "cpu", SEEDS)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_and_so_on_a_gpu() -> None:
    for case, name in DRAFTS:
        with write(case) as written:
            check(written, name, "cuda", SEEDS[:1])


def check(written: Written, name: str, device: str, seeds: Sequence[int]) -> None:
    case, folder, checkpoint = written
    record = case.records[name]
    job = job_of(case, folder, checkpoint, name, device)
    if refusal := cannot_run(case, record):
        with pytest.raises(Refused, match=refusal):
            warmed(job, seeds[0])
        return
    if device != "cpu" and without_meaning(job.plan):
        return
    expected = read_and_unfilled(record)
    for seed in seeds:
        warmup = warmed(job, seed)
        assert named(warmup, record) == expected, (case.folder, name)
        assert warmup.verdict == ("fail" if expected else "pass"), (case.folder, name)
        assert not warmup.out_of_range
        assert not any(source.tensors for source in warmup.sources)
        assert all(source.unfilled for source in warmup.sources)


def job_of(case: Case, folder: Path, checkpoint: Checkpoint, name: str, device: str) -> Job:
    replayed = engine(name).replay(checkpoint, case.conditions)
    assert replayed.model_class and replayed.tree and replayed.plan and not replayed.refusal
    return Job(
        name=case.folder.name,
        engine=name,
        model_class=replayed.model_class,
        tree=replayed.tree,
        plan=replayed.plan,
        forward=engine(name).forward(replayed),
        folder=folder,
        device=device,
        dtype="bfloat16",
        backend="reference",
        blocks=2,
        context=24,
        seed=0,
    )


def warmed(job: Job, seed: int) -> WarmUp:
    return reference_pass(replace(job, seed=seed), torch.device(job.device), Teller(io.StringIO()))


def named(warmup: WarmUp, record: Record) -> set[str]:
    """What the warm-up names, a whole fused parameter by its shards."""
    return {part for source in warmup.sources for name in source.unfilled for part in shards_of(name, record)}


def read_and_unfilled(record: Record) -> set[str]:
    """The parameters, or shards of them, that the engine leaves unfilled and its forward pass reads."""
    schemes = {parameter["name"]: parameter["scheme"] for parameter in record["parameters"]}

    def is_read(target: str) -> bool:
        name = target.partition("[")[0]
        return (schemes[name], name.rpartition(".")[2]) not in UNREAD

    return {*filter(is_read, record["unfilled"])} | {f"{name}[rest]" for name in half_filled(record)}


def cannot_run(case: Case, record: Record) -> str | None:
    """What the engine's kernels say of sizes that they cannot serve; None where they can."""
    heads, key_heads = heads_of(case.folder)
    if heads % key_heads:
        return f"{heads} query heads .* {key_heads} key and value heads"
    shapes = {parameter["name"]: parameter["shape"] for parameter in record["parameters"]}
    for parameter in record["parameters"]:
        module, _, own = parameter["name"].rpartition(".")
        if (parameter["scheme"], own) == ("CompressedTensorsW4A16Fp4", "weight_packed"):
            inputs, groups = 2 * parameter["shape"][1], shapes[f"{module}.weight_scale"][1]
            if inputs % groups:
                return f"{inputs} inputs in {groups} groups"
    return None


@cache
def heads_of(folder: Path) -> tuple[int, int]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    heads = int(config["num_attention_heads"])
    usual = KV_HEADS_OF_QWEN3 if config["model_type"] == "qwen3" else heads
    return heads, int(config.get("num_key_value_heads") or usual)
