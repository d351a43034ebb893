"""On which backend and device a job is done, and what the child tells of it."""

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from warmup.jobs import job

from dflash_audit.engines.installed.packages import Package
from dflash_audit.errors import Unreadable
from dflash_audit.warmup.ending import NO_DEVICE
from dflash_audit.warmup.events import Teller
from dflash_audit.warmup.job import Job
from dflash_audit.warmup.result import WarmUp

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytestmark = pytest.mark.warmup

from dflash_audit.warmup import forward_pass, reference_pass  # noqa: E402

RELEASE, NEXT, LIVE = "sglang-0.5.23", "sglang-next", "sglang@installed"
VERSION = "0.5.23"


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The (backend, device) of each job; none is really done."""
    jobs: list[tuple[str, str]] = []

    def backend(name: str) -> Any:
        def run(job: Job, device: Any, tell: Teller) -> WarmUp:
            jobs.append((name, str(device)))
            return WarmUp(job.engine, name, str(device), job.dtype)

        return run

    class Module:
        reference_pass = staticmethod(backend("reference"))
        sglang_pass = staticmethod(backend("sglang"))

    monkeypatch.setattr(forward_pass, "import_module", lambda name: Module)
    return jobs


def warm_up(
    monkeypatch: pytest.MonkeyPatch, engine: str, backend: str, device: str, version: str | None
) -> WarmUp:
    monkeypatch.setattr(Package, "installed_version", lambda self: version)
    monkeypatch.setattr(forward_pass, "_device", torch.device)
    asked = replace(job("pass_"), engine=engine, backend=backend, device=device)
    return forward_pass.warm_up(asked, Teller(io.StringIO()))


@pytest.mark.parametrize(
    ("engine", "backend", "device", "version", "runs"),
    [
        # By itself the installed SGLang runs what it is, on a GPU; on a CPU only what nothing else can run.
        (RELEASE, "auto", "cuda", VERSION, "sglang"),
        (RELEASE, "auto", "cpu", VERSION, "reference"),
        (RELEASE, "auto", "cuda", "0.5.24", "reference"),
        (RELEASE, "auto", "cuda", None, "reference"),
        (NEXT, "auto", "cuda", VERSION, "reference"),
        (LIVE, "auto", "cpu", VERSION, "sglang"),
        (LIVE, "auto", "cuda", VERSION, "sglang"),
        # As asked for.
        (RELEASE, "reference", "cuda", VERSION, "reference"),
        (RELEASE, "sglang", "cpu", VERSION, "sglang"),
        (LIVE, "sglang", "cuda", VERSION, "sglang"),
    ],
)
def test_which_backend_runs_an_engine(
    monkeypatch: pytest.MonkeyPatch,
    done: list[tuple[str, str]],
    engine: str,
    backend: str,
    device: str,
    version: str | None,
    runs: str,
) -> None:
    warmup = warm_up(monkeypatch, engine, backend, device, version)
    assert done == [(runs, device)]
    assert (warmup.backend, warmup.device) == (runs, device)


@pytest.mark.parametrize(
    ("engine", "backend", "version", "reason"),
    [
        (LIVE, "reference", VERSION, "it tells no copies"),
        (NEXT, "sglang", VERSION, "runs what is installed, and SGLang 0.5.23 is"),
        (RELEASE, "sglang", "0.5.24", "runs what is installed, and SGLang 0.5.24 is"),
        (RELEASE, "sglang", None, "runs what is installed, and no SGLang is"),
    ],
)
def test_what_no_backend_runs_is_told(
    monkeypatch: pytest.MonkeyPatch,
    done: list[tuple[str, str]],
    engine: str,
    backend: str,
    version: str | None,
    reason: str,
) -> None:
    with pytest.raises(Unreadable, match=reason):
        warm_up(monkeypatch, engine, backend, "cpu", version)
    assert done == []


def test_the_child_tells_what_it_runs_on_before_it_runs(
    monkeypatch: pytest.MonkeyPatch, done: list[tuple[str, str]]
) -> None:
    told = io.StringIO()
    forward_pass.warm_up(replace(job("pass_"), device="cpu", backend="reference"), Teller(told))
    assert json.loads(told.getvalue().splitlines()[0]) == {
        "running": {"backend": "reference", "device": "cpu"}
    }


def test_memory_is_measured(monkeypatch: pytest.MonkeyPatch, done: list[tuple[str, str]]) -> None:
    warmup = warm_up(monkeypatch, NEXT, "auto", "cpu", None)
    assert warmup.peak_bytes is not None
    assert warmup.peak_bytes > 10_000_000  # torch alone takes more


def test_auto_is_the_gpu_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, done: list[tuple[str, str]]
) -> None:
    there = torch.cuda.is_available()
    forward_pass.warm_up(replace(job("pass_"), device="auto", backend="reference"), Teller(io.StringIO()))
    assert done == [("reference", "cuda:0" if there else "cpu")]


def test_a_gpu_that_is_not_there_is_the_machines_fault() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    # A torch without CUDA raises the one, a driver that finds no card the other.
    with pytest.raises((RuntimeError, AssertionError), match=NO_DEVICE):
        forward_pass.warm_up(replace(job("pass_"), device="cuda"), Teller(io.StringIO()))


def test_each_backend_is_there() -> None:
    assert forward_pass.BACKENDS["reference"] == "reference_pass:reference_pass"
    assert callable(reference_pass.reference_pass)
