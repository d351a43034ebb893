"""An audit with a warm-up, of which the child is one of these tests' own."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from materialize import materialize
from report_schema import valid
from test_cli import FIXTURES, SEED
from warmup.jobs import warm_up as warm_up_here
from warmup.processes import all_gone

import dflash_audit
from dflash_audit.auditing import Request, audit
from dflash_audit.engine_run import Conditions
from dflash_audit.engines import ENGINES
from dflash_audit.engines.sglang.replay import SGLang
from dflash_audit.finding import Finding
from dflash_audit.formats import render
from dflash_audit.formats.json_report import document
from dflash_audit.formats.screen import Screen
from dflash_audit.formats.told import steps
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.report import Report
from dflash_audit.warmup.job import Job
from dflash_audit.warmup.options import Options
from dflash_audit.warmup.result import WarmUp

ALL = frozenset(name for name in ENGINES if name.startswith("sglang-"))
"""Those whose forward pass is modelled."""
NEXT = frozenset({"sglang-next"})
DEFAULTS = Options()
ONE_RANK = Conditions()


class Child:
    """Takes the place of the child: what it does, and the jobs that it was given."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.what: Callable[[Job], str] = lambda job: "pass_"

    def __call__(self, job: Job, timeout: int) -> WarmUp:
        self.jobs.append(job)
        return warm_up_here(replace(job, forward=self.what(job), model_class="hidden"), timeout)


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Child:
    child = Child()
    monkeypatch.setattr("dflash_audit.warmup.each_engine.warm_up", child)
    return child


def audited(
    source: Path = SEED,
    gating: frozenset[str] = NEXT,
    options: Options | None = DEFAULTS,
    conditions: Conditions = ONE_RANK,
) -> Report:
    return audit(Request(str(source), gating, conditions, warmup=options))


def text(report: Report) -> str:
    return render("text", report, Screen(width=100))


def test_every_gating_engine_is_warmed_up(child: Child) -> None:
    for gating, engines in ((NEXT, ["sglang-next"]), (ALL, sorted(ALL))):
        report = audited(gating=gating)
        said = valid(document(report))["warmup"]
        assert [warmup["engine"] for warmup in said] == engines
        assert {warmup["verdict"] for warmup in said} == {"pass"}
        assert report.error is None
    assert document(audited(options=None))["warmup"] is None


def test_a_job_holds_what_the_engine_builds_and_the_user_asks_for(child: Child) -> None:
    asked = Options("cuda:1", "float16", "reference", blocks=3, context=5, seed=7, timeout=60)
    audited(SEED / "model.safetensors", ALL, asked)
    for job in child.jobs:
        assert (job.model_class, job.folder) == ("DFlash2DraftModel", SEED)
        assert (job.device, job.dtype, job.backend) == ("cuda:1", "float16", "reference")
        assert (job.blocks, job.context, job.seed, job.provoke) == (3, 5, 7, False)
        assert all((job.folder / tensor.file).is_file() for tensor in job.plan.tensors)
    _, release, following = child.jobs
    assert release.plan.missing() and not following.plan.missing()
    assert job.forward.layers and len(job.forward.layers) == 2


def test_what_would_not_run_is_skipped_with_the_reason(
    child: Child, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reasons(case: str, tp: int = 1) -> list[str]:
        source = materialize(FIXTURES / "cases" / case, tmp_path / case)
        report = audited(source, ALL, conditions=Conditions(tp=tp))
        assert {warmup.verdict for warmup in report.warmups or ()} == {"skipped"}
        assert any(skip.rule == "warmup-died" for skip in report.skips)
        assert report.error is None
        assert child.jobs == []
        return [warmup.skipped or "" for warmup in report.warmups or ()]

    assert "target_layer_ids[1]=9 is out of range" in reasons("target-ids-range")[0]
    assert reasons("target-ids-range")[0].startswith("the engine stops before it would run (build: ")
    assert reasons("arch-unknown")[1].startswith("the engine stops before it would run (class: ")
    assert reasons("dense-dflash2", tp=2) == ["the warm-up runs a draft of one rank, and --tp is 2"] * len(
        ALL
    )

    def raises(error: Exception) -> None:
        def forward(engine: object, run: object) -> None:
            raise error

        monkeypatch.setattr(SGLang, "forward", forward)

    raises(NotModelled("that head is not replayed"))
    assert reasons("dense-dflash1") == ["that head is not replayed"] * len(ALL)
    raises(Refused("a size is no number"))
    assert reasons("dense-dflash1")[0] == "the engine stops before it would run (a size is no number)"


def test_a_death_by_the_draft_is_a_finding(child: Child) -> None:
    child.what = lambda job: "device_assert"
    report = audited()
    (finding,) = [finding for finding in report.findings if finding.rule.startswith("warmup")]
    assert (finding.rule, finding.severity, finding.engine) == ("warmup-died", "error", "sglang-next")
    assert "`srcIndex < srcSelectDimSize` in indexSelectSmallIndex" in finding.message
    assert (report.exit_code, report.error) == (1, None)
    said = valid(document(report))
    assert said["warmup"][0]["death"]["kind"] == "assert"
    assert {e["name"]: e["verdict"] for e in said["engines"]}["sglang-next"] == "fail"
    assert "Serve it on" not in text(report)
    assert "assert in the stage hidden: `srcIndex" in " ".join(text(report).split())


def test_a_death_by_the_machine_is_exit_code_3_and_no_finding(child: Child) -> None:
    child.what = lambda job: "cuda_out_of_memory"
    report = audited()
    assert not [finding for finding in report.findings if finding.rule.startswith("warmup")]
    assert report.exit_code == 3
    assert report.error is not None
    assert report.error.kind == "out-of-memory"
    assert report.error.message == (
        "sglang-next: the warm-up could not be run, out-of-memory in the stage hidden:"
        " OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    )
    said = valid(document(report))
    assert said["engines"] and said["source"]["files"]
    assert said["warmup"][0]["verdict"] == "skipped"
    assert any(skip["rule"] == "warmup-unfilled" for skip in said["skips"])
    assert "not run" in text(report)
    assert "Serve it on" not in text(report)


@pytest.mark.parametrize(
    ("provoked", "died", "told"),
    [
        ("device_assert", True, "provoked with an id out of range: assert in the stage hidden: `srcIndex"),
        ("pass_", False, "provoked with an id out of range: nothing stopped it"),
    ],
)
def test_provoked(child: Child, provoked: str, died: bool, told: str) -> None:
    child.what = lambda job: provoked if job.provoke else "pass_"
    report = audited(options=Options(provoke=True))
    (warmup,) = report.warmups or ()
    assert [job.provoke for job in child.jobs] == [False, True]
    assert ((warmup.provoked is not None), warmup.survived) == (died, not died)
    assert (warmup.verdict, report.exit_code) == ("pass", 0)
    assert told in " ".join(text(report).split())


def test_who_is_dead_is_not_provoked(child: Child) -> None:
    child.what = lambda job: "segfault"
    audited(options=Options(provoke=True))
    assert [job.provoke for job in child.jobs] == [False]


def test_a_mend_is_not_told_twice() -> None:
    static = Finding(
        "unfilled-parameter", "error", "sglang-next", "fc.weight", "Nothing fills it.", "Add it."
    )
    shown = replace(static, rule="warmup-unfilled", hint="Mend what unfilled-parameter names.")
    apart = replace(static, rule="warmup-nonfinite", subject="norm", hint="Export these tensors again.")

    def mends(*findings: Finding) -> list[str]:
        return [step.mend for listed in steps(findings) for step in listed]

    assert mends(static, shown, apart) == ["Export these tensors again.", "Add it."]
    assert mends(shown) == ["Mend what unfilled-parameter names."]


PROGRAM = """
import sys
from functools import partial
from warmup.jobs import CHILD
from dflash_audit.engines.sglang.replay import SGLang
from dflash_audit.warmup import each_engine, extra, isolation
extra.PACKAGES = ()
what = sys.argv.pop(1)
SGLang.forward = lambda self, run: what
each_engine.warm_up = partial(isolation.warm_up, module=CHILD)
from dflash_audit.cli import main
main()
"""


def program(what: str, *words: str) -> subprocess.Popen[str]:
    path = ":".join(filter(None, sys.path))
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, what, str(SEED), "--warmup", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": path, "PATH": ""},
    )


@pytest.mark.parametrize(("what", "code", "lines"), [("pass_", 0, 0), ("segfault", 1, 0), ("kill", 3, 1)])
def test_the_program(what: str, code: int, lines: int) -> None:
    done = program(what, "--json")
    said, told = done.communicate(timeout=60)
    report: dict[str, Any] = valid(json.loads(said))
    assert done.returncode == report["summary"]["exit_code"] == code
    assert len(told.splitlines()) == lines
    assert len(report["warmup"]) == 1
    if lines:
        assert told == f"dflash-audit: {report['error']['message']}\n"
    with program(what) as again:
        said, told = again.communicate(timeout=60)
        assert again.returncode == code
        assert "Warm-up" in said


def test_a_timeout_leaves_nothing_running() -> None:
    with program("hang", "--json", "--timeout", "2") as done:
        said, _ = done.communicate(timeout=60)
    death = json.loads(said)["warmup"][0]["death"]
    assert (done.returncode, death["kind"]) == (1, "timeout")
    assert all_gone(map(int, death["stage"].split()[1:]))


def test_a_warm_up_that_a_program_asks_for(
    child: Child, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dflash_audit.warmup.extra.missing", lambda: None)
    report = dflash_audit.audit(SEED, warmup=dflash_audit.WarmUpOptions(device="cpu", blocks=3))
    assert [(job.device, job.blocks) for job in child.jobs] == [("cpu", 3)]
    assert report.warmups is not None
    assert [warmup.engine for warmup in report.warmups] == ["sglang-next"]
    assert report.exit_code == 0
    for wrong in (Options(device="gpu"), Options(dtype="int8"), Options(backend="torch")):
        with pytest.raises(dflash_audit.WrongUsage, match="Known:"):
            dflash_audit.audit(SEED, warmup=wrong)
    monkeypatch.setattr("dflash_audit.warmup.extra.missing", lambda: "--warmup needs torch")
    with pytest.raises(dflash_audit.WrongUsage, match="needs torch"):
        dflash_audit.audit(SEED, warmup=DEFAULTS)
    assert capfd.readouterr() == ("", "")
