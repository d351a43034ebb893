"""The whole way from the command line to torch in the child and back, on the draft that began it all."""

import pytest
from test_cli import SEED, report

pytestmark = pytest.mark.warmup
pytest.importorskip("torch")


def test_the_release_runs_on_memory_that_nothing_filled() -> None:
    said = report(
        str(SEED), "--warmup", "--engine", "all", "--device", "cpu", "--blocks", "1", "--context", "16"
    )
    assert {warmup["engine"]: (warmup["verdict"], warmup["death"]) for warmup in said["warmup"]} == {
        "sglang-0.5.19": ("fail", None),
        "sglang-0.5.23": ("fail", None),
        "sglang-next": ("pass", None),
        "vllm-0.33.0": ("skipped", None),
    }
    told = [finding for finding in said["findings"] if finding["rule"].startswith("warmup")]
    assert [(finding["rule"], finding["engine"]) for finding in told] == [
        ("warmup-unfilled", "sglang-0.5.19"),
        ("warmup-unfilled", "sglang-0.5.23"),
    ]
    missing = {
        parameter["name"]
        for parameter in said["engines"][0]["parameters"]
        if parameter["missing"] and not parameter["name"].endswith("weight_shape")
    }
    assert all(set(finding["subjects"]) == missing for finding in told)
