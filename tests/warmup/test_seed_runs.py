"""The whole way from the command line to torch in the child and back, on the draft that began it all."""

import pytest
from test_cli import SEED, report

pytestmark = pytest.mark.warmup
pytest.importorskip("torch")


def test_the_release_runs_on_memory_that_nothing_filled() -> None:
    said = report(
        str(SEED), "--warmup", "--engine", "all", "--device", "cpu", "--blocks", "1", "--context", "16"
    )
    release, following = said["warmup"]
    assert (release["engine"], release["verdict"]) == ("sglang-0.5.23", "fail")
    assert (following["engine"], following["verdict"], following["death"]) == ("sglang-next", "pass", None)
    (finding,) = [finding for finding in said["findings"] if finding["rule"].startswith("warmup")]
    assert (finding["rule"], finding["engine"]) == ("warmup-unfilled", "sglang-0.5.23")
    missing = {
        parameter["name"]
        for parameter in said["engines"][0]["parameters"]
        if parameter["missing"] and not parameter["name"].endswith("weight_shape")
    }
    assert set(finding["subjects"]) == missing
