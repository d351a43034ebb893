"""The self-check: its cases, the profile that it takes, and what it calls a difference."""

from dataclasses import replace
from pathlib import Path

import pytest
from materialize import materialize

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import engine
from dflash_audit.engines.installed.packages import SGLANG, VLLM, Package
from dflash_audit.refusal import Refusal, Stage
from dflash_audit.selfcheck.cases import find_cases
from dflash_audit.selfcheck.check import nearest_profile
from dflash_audit.selfcheck.differences import differences
from dflash_audit.sources.disk import read_path
from dflash_audit.usage import WrongUsage, installed_packages

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.parametrize("version", ["0.5.23", "0.5.24", "0.6.0rc1", "1.0", "0.5.23.post1", "unknown"])
def test_the_nearest_profile_is_a_release(version: str) -> None:
    assert nearest_profile(SGLANG, version) == "sglang-0.5.23"


@pytest.mark.parametrize("version", ["0.5.19", "0.5.19.post1", "0.5.22", "0.4.0"])
def test_of_two_releases_the_one_before_is_nearest(version: str) -> None:
    assert nearest_profile(SGLANG, version) == "sglang-0.5.19"


@pytest.mark.parametrize("version", ["0.33.0", "0.32.1", "0.33.1rc2", "1.0", "unknown"])
def test_of_another_package_a_profile_of_its_own_is_nearest(version: str) -> None:
    assert nearest_profile(VLLM, version) == "vllm-0.33.0"


@pytest.mark.parametrize(
    ("there", "profile", "compared"),
    [
        ("sglang vllm", None, [SGLANG, VLLM]),
        ("vllm", None, [VLLM]),
        ("sglang vllm", "vllm-0.33.0", [VLLM]),
        ("sglang vllm", "sglang-next", [SGLANG]),
        ("sglang", "vllm-0.33.0", None),
        ("", None, None),
    ],
)
def test_what_is_installed_is_compared(
    there: str, profile: str | None, compared: list[Package] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = there.split()
    monkeypatch.setattr(Package, "installed_version", lambda self: "1" if self.module in found else None)
    if compared is None:
        with pytest.raises(WrongUsage, match="pip install"):
            installed_packages(profile)
    else:
        assert installed_packages(profile) == compared


def test_it_finds_checkpoints_and_recorded_cases_once(tmp_path: Path) -> None:
    materialize(FIXTURES / "cases" / "dense-dflash1", tmp_path / "drafts" / "one")
    (tmp_path / "drafts" / "none").mkdir()
    (tmp_path / "drafts" / "none" / "config.json").write_text("{}")
    found = find_cases([tmp_path / "drafts", tmp_path / "drafts" / "one", FIXTURES / "cases" / "inherit-fp8"])
    assert [case.name for case in found] == ["drafts/one", "inherit-fp8"]
    assert [case.conditions(89) for case in found] == [
        Conditions(capability=89),
        Conditions(capability=89, quantization="fp8"),
    ]


def test_a_recorded_case_is_laid_out() -> None:
    (case,) = find_cases([FIXTURES / "cases" / "dense-dflash1"])
    with case.checkpoint() as checkpoint:
        assert len(checkpoint.tensors) > 10
        assert "expected.json" not in checkpoint.names


def replayed(case: str, name: str, scratch: Path) -> EngineRun:
    return engine(name).replay(read_path(materialize(FIXTURES / "cases" / case, scratch)), Conditions())


def test_a_run_does_not_differ_from_itself(tmp_path: Path) -> None:
    runs = [replayed("ct-dflash2-w8a16_seed", "sglang-0.5.23", tmp_path) for _ in range(2)]
    assert [*differences(*runs)] == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_class": "Other"}, "class: DFlash2DraftModel by the profile, Other by the engine"),
        ({"quantization": None}, "quantization: compressed-tensors by the profile, None by the engine"),
        ({"refusal": Refusal("build", "no")}, "stops at: nothing by the profile, build by the engine"),
    ],
)
def test_what_a_run_says_is_compared(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    run = replayed("ct-dflash2-w8a16_seed", "sglang-0.5.23", tmp_path)
    assert said in [*differences(run, replace(run, **changes))]  # type: ignore[arg-type]


def test_prefixes_fills_and_gaps_are_compared(tmp_path: Path) -> None:
    release, following = (
        replayed("ct-dflash2-w8a16_seed", name, tmp_path) for name in ("sglang-0.5.23", "sglang-next")
    )
    lines = "\n".join(differences(release, following))
    assert "'down_proj'" in lines and "'layers.0.mlp.down_proj'" in lines
    assert "tensor fc.weight_packed: [] by the profile" in lines
    assert "missing layers.0.self_attn.qkv_proj.weight_packed: ('all',) by the profile, None" in lines


@pytest.mark.parametrize(
    ("name", "stages", "differ"),
    [
        ("sglang-0.5.23", ("class", "config"), True),
        ("vllm-0.33.0", ("class", "config"), False),
        ("vllm-0.33.0", ("quant_config", "build"), False),
        ("vllm-0.33.0", ("config", "build"), True),
    ],
)
def test_stages_that_an_engine_takes_as_one_are_one(
    name: str, stages: tuple[Stage, Stage], differ: bool
) -> None:
    runs = (EngineRun(name, refusal=Refusal(stage, "no")) for stage in stages)
    assert bool([*differences(*runs)]) == differ


def test_of_refused_tensors_both_must_tell(tmp_path: Path) -> None:
    run, other = (replayed("shape-q", "sglang-0.5.23", tmp_path) for _ in range(2))
    assert run.refusal is not None and other.plan is not None
    other.plan.refusals.pop()
    assert any(line.startswith("refuses: ") for line in differences(run, other))
