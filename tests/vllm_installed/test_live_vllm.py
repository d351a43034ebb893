"""The installed vLLM itself: run by a Python that holds vllm, pytest and the audit."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from materialize import materialize
from parity.case import recorded
from parity.comparison import disagreements
from test_cli import report, run

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import engine
from dflash_audit.engines.installed.engine import Installed
from dflash_audit.engines.installed.packages import VLLM
from dflash_audit.engines.installed.process import Process
from dflash_audit.facts import Facts
from dflash_audit.formats.json_report import document
from dflash_audit.judge import judge
from dflash_audit.report import Report
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.sources.disk import read_path

PROFILE, LIVE = "vllm-0.33.0", "vllm@installed"

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(
        VLLM.installed_version() != PROFILE.removeprefix(VLLM.profiles), reason=f"{PROFILE} is not installed"
    ),
]

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="module")
def process() -> Iterator[Process]:
    with Process(VLLM, 90) as child:
        yield child


@pytest.mark.parametrize("group", ["cases", "fuzz", "random-vllm", "differences", "mended"])
def test_it_does_what_was_recorded(group: str, process: Process, tmp_path: Path) -> None:
    cases = [case for case in recorded(group) if PROFILE in case.records and case.conditions.tp == 1]
    assert cases
    for case in cases:
        folder = materialize(case.folder, tmp_path / case.folder.name)
        audited = audited_by_both(read_path(folder), case.conditions, process)
        name = case.folder.name
        assert (name, disagreements(case, case.records[PROFILE], LIVE, document(audited))) == (name, [])
        live, profile = (audited.verdict(run) for run in audited.runs)
        assert (name, live) == (name, profile)


@pytest.mark.parametrize("capability", [75, 80, 100, 120])
def test_it_builds_on_any_card_what_the_profile_builds(capability: int, tmp_path: Path) -> None:
    conditions = Conditions(capability=capability)
    with Process(VLLM, capability) as child:
        for name in ("dense-dflash1", "ct-dflash2-fp8dyn_all", "ct-dflash2-w4a16_all"):
            folder = materialize(FIXTURES / "cases" / name, tmp_path / name)
            audited = audited_by_both(read_path(folder), conditions, child)
            live, profile = audited.runs
            assert live.tree is not None, (name, live.refusal)
            assert audited.verdict(live) == audited.verdict(profile), name
            assert shapes(live) == shapes(profile), name


def shapes(run: EngineRun) -> dict[str, tuple[int, ...]]:
    """Of every parameter that was built."""
    assert run.tree is not None
    return {name: parameter.shape for name, _, parameter in run.tree.parameters()}


def audited_by_both(checkpoint: Checkpoint, conditions: Conditions, process: Process) -> Report:
    """A report of the installed vLLM and of the profile."""
    live = engine(LIVE)
    assert isinstance(live, Installed)
    runs = (
        live.replay_in(process, checkpoint, conditions),
        engine(PROFILE).replay(checkpoint, conditions),
    )
    gating = frozenset((LIVE, PROFILE))
    findings, skips = judge(Facts(checkpoint, runs, gating, conditions))
    return Report(
        checkpoint.origin,
        checkpoint=checkpoint,
        runs=runs,
        gating=gating,
        findings=tuple(findings),
        skips=tuple(skips),
        conditions=conditions,
    )


def test_selfcheck_says_that_they_agree() -> None:
    done = run("selfcheck", *(str(FIXTURES / name) for name in ("seed-bf16", "seed-w8a16", "cases")))
    assert done.returncode == 0, done.stdout
    assert f"{PROFILE} and the installed vLLM {VLLM.installed_version()} agree on" in done.stdout


def test_an_audit_by_it_fills_the_same_report() -> None:
    said = report(str(FIXTURES / "seed-w8a16"), "--engine", LIVE)
    entries = {entry["name"]: entry for entry in said["engines"]}
    live, profile = entries[LIVE], entries[PROFILE]
    assert (live["gating"], live["version"]) == (True, VLLM.installed_version())
    for key in ("verdict", "model_class", "parameters", "tensors", "assumed"):
        assert live[key] == profile[key], key


def test_what_it_draws_from_a_target_is_what_is_named(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    config = '{"architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 36, "hidden_size": 128}'
    (tmp_path / "target" / "config.json").write_text(config)
    source = materialize(FIXTURES / "cases" / "ct-dflash1-w8a16_all", tmp_path / "draft")
    said = report(str(source), "--engine", LIVE, "--target", str(tmp_path / "target"))
    (live,) = (entry for entry in said["engines"] if entry["name"] == LIVE)
    assert "model.layers.36.self_attn.qkv_proj" in {p["prefix"] for p in live["parameters"]}
