"""A repair that the installed SGLang itself decides on."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from materialize import materialize
from test_cli import run

pytestmark = [
    pytest.mark.sglang,
    pytest.mark.skipif(find_spec("sglang") is None, reason="SGLang is not installed"),
]

FIXTURES = Path(__file__).parents[2] / "fixtures"
LIVE = "sglang@installed"


@pytest.mark.parametrize("single", [False, True])
def test_it_is_asked_before_and_after(single: bool, tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "selector-keys-lost", tmp_path / "draft")
    named = source / "model.safetensors" if single else source
    done = run("fix", str(named), "--engine", LIVE, "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["outcome"], said["gating"]) == (0, "mended", [LIVE])
    assert (said["before"][LIVE], said["after"][LIVE]) == ("fail", "pass")
    assert json.loads((source / "config.json").read_text())["dflash_config"].get("selector_rank") is None


def test_what_it_loads_once_mended(tmp_path: Path) -> None:
    """`selfcheck` on the mended drafts: what the profile says of them is what SGLang does."""
    done = run("selfcheck", str(FIXTURES / "mended"))
    assert done.returncode == 0, done.stdout
