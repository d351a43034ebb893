"""Which draft another can be held against, and what becomes of one that is none."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from materialize import materialize
from test_cli import FIXTURES, SEED
from warmup.jobs import warm_up as warm_up_here

from dflash_audit.auditing import Request, audit
from dflash_audit.engine_run import Conditions
from dflash_audit.engines import ENGINES
from dflash_audit.report import Report
from dflash_audit.warmup.job import Job
from dflash_audit.warmup.options import Options
from dflash_audit.warmup.result import WarmUp

DENSE = FIXTURES / "seed-bf16"


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """What the children are given; each gives a pass."""
    given: list[Job] = []

    def child(job: Job, timeout: int) -> WarmUp:
        given.append(job)
        return warm_up_here(replace(job, forward="pass_", model_class="hidden", against=None), timeout)

    monkeypatch.setattr("dflash_audit.warmup.each_engine.warm_up", child)
    return given


def audited(
    against: Path,
    source: Path = SEED,
    gating: frozenset[str] = frozenset({"sglang-next"}),
    provoke: bool = False,
    conditions: Conditions | None = None,
) -> Report:
    options = Options(against=str(against), provoke=provoke)
    return audit(Request(str(source), gating, conditions or Conditions(), warmup=options))


def test_the_same_engine_loads_both(jobs: list[Job]) -> None:
    report = audited(DENSE, DENSE, frozenset(ENGINES))
    modelled = [name for name in ENGINES if name.startswith("sglang-")]
    assert (report.error, [job.engine for job in jobs]) == (None, modelled)
    for job in jobs:
        assert job.against is not None
        assert (job.against.name, job.against.folder, job.against.engine) == (str(DENSE), DENSE, job.engine)
        assert job.against.forward == job.forward
        assert job.against.against is None


def test_the_servers_quantization_is_not_the_originals(jobs: list[Job]) -> None:
    audited(DENSE, DENSE, conditions=Conditions(quantization="fp8"))
    (job,) = jobs
    assert job.against is not None
    assert (job.quantization, job.against.quantization) == ("fp8", None)
    schemes = [
        {module.scheme.name for module in tree.modules.values() if module.scheme}
        for tree in (job.tree, job.against.tree)
    ]
    assert "Fp8LinearMethod" in schemes[0] and "Fp8LinearMethod" not in schemes[1]


def test_a_provoked_run_is_not_compared(jobs: list[Job]) -> None:
    audited(DENSE, provoke=True)
    assert [(job.provoke, job.against is None) for job in jobs] == [(False, False), (True, True)]


def edited(folder: Path, **keys: object) -> Path:
    """The dense seed with other keys in its config; its weights are the same."""
    folder.mkdir()
    config = json.loads((DENSE / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | keys))
    (folder / "model.safetensors").symlink_to(DENSE / "model.safetensors")
    return folder


def test_an_original_that_computes_something_else_is_none(jobs: list[Job], tmp_path: Path) -> None:
    other = edited(tmp_path / "other", rms_norm_eps=1e-5, layer_types=["full_attention"] * 2)
    report = audited(other)
    assert report.error is not None and report.checkpoint is not None
    assert (report.error.kind, report.exit_code, jobs) == ("no-yardstick", 3, [])
    assert report.error.message == (
        f"{other}: nothing can be held against it on sglang-next:"
        " it computes something else, by its eps, layers"
    )


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("missing-norms", "nothing fills "),
        ("target-ids-range", "the engine stops (build: target_layer_ids[1]=9 is out of range"),
        ("arch-unknown", "the engine stops (class: "),
        ("fp8-dynamic-bf16-weights", "nothing fills "),
        ("ct-dflash2-w4a16_all", "it is quantized itself (compressed-tensors)"),
    ],
)
def test_an_original_that_the_engine_does_not_load_is_none(
    jobs: list[Job], tmp_path: Path, case: str, told: str
) -> None:
    original = materialize(FIXTURES / "cases" / case, tmp_path / case)
    report = audited(original)
    assert report.error is not None
    assert (report.error.kind, report.exit_code, jobs) == ("no-yardstick", 3, [])
    assert report.error.message.startswith(
        f"{original}: nothing can be held against it on sglang-next: {told}"
    )


def test_an_original_that_is_not_there_is_exit_code_3(jobs: list[Job], tmp_path: Path) -> None:
    report = audited(tmp_path / "nowhere")
    assert report.error is not None and report.checkpoint is not None
    assert (report.exit_code, report.warmups, jobs) == (3, (), [])
    assert str(tmp_path / "nowhere") in report.error.message


def test_where_nothing_is_to_run_the_original_is_not_read(jobs: list[Job], tmp_path: Path) -> None:
    refused = materialize(FIXTURES / "cases" / "arch-unknown", tmp_path / "refused")
    report = audited(tmp_path / "nowhere", refused)
    assert (report.error, jobs) == (None, [])
    assert [warmup.verdict for warmup in report.warmups or ()] == ["skipped"]
