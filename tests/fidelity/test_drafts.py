"""A draft held against the one that it was quantized from: rounding passes, faults do not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_cli import FIXTURES, SEED, report

pytestmark = pytest.mark.warmup
torch = pytest.importorskip("torch")
pytest.importorskip("compressed_tensors")

from fidelity.drafts import SPREADS, compare, write_draft  # noqa: E402
from fidelity.faults import faults_of  # noqa: E402
from fidelity.quantize import LAYOUTS, Fault, Tensors, write_quantized  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

from dflash_audit.engine_run import EngineRun  # noqa: E402
from dflash_audit.finding import Finding  # noqa: E402
from dflash_audit.rules import finder  # noqa: E402
from dflash_audit.warmup.result import WarmUp  # noqa: E402

INT4 = "int4 by 128, asymmetric"
ZERO = "zero points off by one"
HIT = "layers.1.mlp.up_proj"

Dense = Callable[[str], Path]


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Dense:
    """The folder of a dense draft whose weights are spread so; each is written once."""
    written: dict[str, Path] = {}

    def folder(spread: str) -> Path:
        if spread not in written:
            written[spread] = write_draft(tmp_path_factory.mktemp(spread) / "dense", 256, 2, spread)
        return written[spread]

    return folder


def found(rule: str, warmup: WarmUp) -> list[Finding]:
    return [*finder(rule)(warmup, EngineRun("sglang-next"))]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("spread", ["normal", "outliers"])
def test_rounding_to_the_nearest_passes(layout: str, spread: str, dense: Dense, tmp_path: Path) -> None:
    warmup = compare(write_quantized(tmp_path / "draft", dense(spread), layout), dense(spread))
    assert warmup.fidelity is not None and warmup.fidelity.rescaled == ()
    quantized = [drift for drift in warmup.fidelity.drifts if drift.bits < 16]
    assert len(quantized) == 2 * 7 + 1  # q, k, v, o, gate, up and down of two layers, and fc
    assert min(drift.error for drift in quantized) > 0
    assert found("warmup-weight-drift", warmup) == []
    assert [each for each in found("warmup-hidden-drift", warmup) if each.severity == "error"] == []


@pytest.mark.parametrize(
    ("layout", "name"),
    [
        (layout, name)
        for layout in (
            "int8 by channel",
            "int8 by 128, asymmetric",
            "int4 by 128",
            INT4,
            "fp8 by tensor",
            "fp8 by block",
            "nvfp4",
        )
        for name in faults_of(layout)
    ],
)
def test_a_fault_in_one_matrix_is_named(layout: str, name: str, dense: Dense, tmp_path: Path) -> None:
    draft = write_quantized(tmp_path / "draft", dense("normal"), layout, faults_of(layout)[name])
    (finding,) = found("warmup-weight-drift", compare(draft, dense("normal")))
    assert finding.severity == "error"
    assert HIT in finding.subjects
    assert {*finding.subjects} <= {HIT, "layers.1.mlp.gate_proj"}
    assert ("zero point" if name == ZERO else "scale") in finding.message


def rescaled(dense: Path, target: Path) -> Path:
    """The dense draft with scales moved from its gate and up projections into the norm before them."""
    tensors: Tensors = load_file(dense / "model.safetensors")
    scale = torch.linspace(0.5, 2.0, 256)
    for layer in ("layers.0", "layers.1"):
        norm = f"{layer}.post_attention_layernorm.weight"
        tensors[norm] = (tensors[norm].float() / scale).bfloat16()
        for name in ("gate_proj", "up_proj"):
            weight = f"{layer}.mlp.{name}.weight"
            tensors[weight] = (tensors[weight].float() * scale).bfloat16()
    target.mkdir()
    (target / "config.json").write_text((dense / "config.json").read_text())
    save_file(tensors, target / "model.safetensors")
    return target


@pytest.mark.parametrize("fault", [None, faults_of(INT4, everywhere=True)[ZERO]])
def test_where_scales_went_into_norms_the_hidden_states_judge(
    fault: Fault | None, dense: Dense, tmp_path: Path
) -> None:
    moved = rescaled(dense("normal"), tmp_path / "moved")
    warmup = compare(write_quantized(tmp_path / "draft", moved, INT4, fault), dense("normal"))
    assert warmup.fidelity is not None and warmup.fidelity.rescaled == ("layers.0", "layers.1")
    assert max(abs(drift.gain - 1) for drift in warmup.fidelity.drifts) > 0.25
    named = {name for finding in found("warmup-weight-drift", warmup) for name in finding.subjects}
    assert named == (set() if fault is None else {"fc"})
    severities = {finding.severity for finding in found("warmup-hidden-drift", warmup)}
    assert ("error" in severities) == (fault is not None)


def test_poison_is_held_against_nothing(dense: Dense, tmp_path: Path) -> None:
    def gap(tensors: Tensors) -> None:
        del tensors["layers.0.mlp.down_proj.weight_scale"]

    warmup = compare(write_quantized(tmp_path / "draft", dense("normal"), INT4, gap), dense("normal"))
    assert warmup.reached and warmup.fidelity is None


def test_a_norm_that_is_hardly_another_excuses_nothing(dense: Dense, tmp_path: Path) -> None:
    def faulty(tensors: Tensors) -> None:
        faults_of(INT4, everywhere=True)[ZERO](tensors)
        for name in ("norm.weight", "layers.0.input_layernorm.weight"):
            tensors[name][0] *= 1.01

    warmup = compare(write_quantized(tmp_path / "draft", dense("normal"), INT4, faulty), dense("normal"))
    assert warmup.fidelity is not None and warmup.fidelity.rescaled == ()
    assert found("warmup-weight-drift", warmup)


def test_a_draft_is_itself(dense: Dense) -> None:
    fidelity = compare(dense("normal"), dense("normal")).fidelity
    assert fidelity is not None
    assert {drift.error for drift in fidelity.drifts} == {0.0}
    assert (fidelity.first, fidelity.common) == (1.0, 1.0)
    assert [cosine.stage for cosine in fidelity.cosines] == ["context", "layer 0", "layer 1", "norm"]
    assert min(cosine.least for cosine in fidelity.cosines) == pytest.approx(1.0, abs=1e-6)
    # Nothing is rounded, so there is no noise either.
    assert min(cosine.rounding for cosine in fidelity.cosines) == pytest.approx(1.0, abs=1e-6)
    assert fidelity.common_rounding == 1.0


# From the command line


def audited(draft: Path, against: Path, *words: str) -> dict[str, Any]:
    return report(str(draft), "--warmup", "--device", "cpu", "--against", str(against), *words)


def test_the_quantized_seed_against_the_dense_one() -> None:
    said = audited(SEED, FIXTURES / "seed-bf16")
    (warmup,) = said["warmup"]
    fidelity = warmup["fidelity"]
    assert (fidelity["against"], fidelity["rescaled"]) == (str(FIXTURES / "seed-bf16"), [])
    (last,) = [cosine for cosine in fidelity["cosines"] if cosine["stage"] == "norm"]
    assert 0.999 < last["rounding"] < 1
    assert last["mean"] > 0.9997  # the real engine has 0.9998 on an H200, of other prompts
    fc = next(drift for drift in fidelity["drifts"] if drift["matrix"] == "fc")
    assert (fc["numbers"], fc["bits"], fc["width"]) == ("int", 8, 128)
    assert 40 < fc["decibels"] < 50
    assert said["summary"]["exit_code"] == 0
    assert not [finding for finding in said["findings"] if finding["rule"].startswith("warmup")]


def test_a_wrong_zero_point_exits_1(dense: Dense, tmp_path: Path) -> None:
    draft = write_quantized(tmp_path / "draft", dense("normal"), INT4, faults_of(INT4)[ZERO])
    said = audited(draft, dense("normal"))
    (finding,) = [finding for finding in said["findings"] if finding["rule"].startswith("warmup")]
    assert (finding["rule"], finding["subjects"]) == ("warmup-weight-drift", [HIT])
    assert said["summary"]["exit_code"] == 1


def test_an_original_of_nan_is_exit_code_3(dense: Dense, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    tensors = load_file(dense("normal") / "model.safetensors")
    tensors["norm.weight"][0] = float("nan")
    save_file(tensors, broken / "model.safetensors")
    (broken / "config.json").write_text((dense("normal") / "config.json").read_text())
    said = audited(dense("normal"), broken)
    assert said["summary"]["exit_code"] == 3
    assert "NaN or infinities in norm" in said["error"]["message"]
    assert "so nothing can be held against it" in said["error"]["message"]
    assert not [finding for finding in said["findings"] if finding["rule"].startswith("warmup")]


def test_every_spread_is_a_draft_of_its_own(dense: Dense) -> None:
    weights = {
        spread: load_file(dense(spread) / "model.safetensors")["fc.weight"].float() for spread in SPREADS
    }
    kurtosis = {
        spread: float((value**4).mean() / (value**2).mean() ** 2) for spread, value in weights.items()
    }
    assert kurtosis["normal"] < 3.2 < min(kurtosis[spread] for spread in ("outliers", "heavy", "uneven"))
    assert json.loads((dense("normal") / "config.json").read_text())["hidden_size"] == 256
