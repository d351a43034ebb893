"""The words of a warm-up on the command line."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from test_cli import SEED, run

from dflash_audit.cli.options.warm_up import warm_up_options
from dflash_audit.warmup import extra
from dflash_audit.warmup.options import Options

ROOT = Path(__file__).parents[2]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extra, "PACKAGES", ("json",))


def test_what_is_left_out_has_its_default(installed: None) -> None:
    assert warm_up_options(True, False, device=None, seed=None) == Options()
    assert warm_up_options(True, True, device="cpu", seed=0) == Options(device="cpu", seed=0, provoke=True)
    assert warm_up_options(False, False, device=None) is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--device", "cdua"], "cdua is no device. Did you mean cuda? Known: auto, cpu, cuda, cuda:N."),
        (["--device", "cuda:-1"], "cuda:-1 is no device. Did you mean cuda:N?"),
        (["--dtype", "bfloat61"], "bfloat61 is no dtype. Did you mean bfloat16?"),
        (["--backend", "sgland"], "sgland is no backend. Did you mean sglang?"),
        (["--blocks", "0"], "Invalid value for '--blocks'"),
        (["--context", "none"], "Invalid value for '--context'"),
        (["--timeout", "0"], "Invalid value for '--timeout'"),
        (["--seed", "-1"], "Invalid value for '--seed'"),
        (["--tp", "2"], "--warmup runs a draft of one rank: no --tp"),
    ],
)
def test_a_wrong_word_is_a_usage_error(words: list[str], told: str) -> None:
    done = run(str(SEED), "--warmup", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "words",
    [
        ["--device", "cpu"],
        ["--device", "CUDA:3"],
        ["--dtype", "float16"],
        ["--backend", "reference"],
        ["--blocks", "1"],
        ["--context", "8"],
        ["--seed", "0"],
        ["--timeout", "5"],
        ["--provoke"],
        ["--against", "org/original"],
    ],
)
def test_an_option_of_the_warm_up_needs_it(words: list[str]) -> None:
    done = run(str(SEED), *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{words[0]} is for a warm-up: add --warmup." in " ".join(done.stderr.split())


def test_without_the_extra_one_line_says_how_to_install_it() -> None:
    hidden = (
        "import sys, importlib.util as util\n"
        "found = util.find_spec\n"
        "util.find_spec = lambda name: None if name in ('torch', 'compressed_tensors') else found(name)\n"
        "sys.argv = ['dflash-audit', *sys.argv[1:]]\n"
        "from dflash_audit.cli import main\n"
        "main()"
    )
    command = [sys.executable, "-c", hidden, str(SEED), "--warmup"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "torch" in line and "compressed-tensors" in line
    assert line.endswith(": pip install 'dflash-audit[warmup]'")


def test_the_extra_is_what_the_package_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {line.partition(">")[0] for line in project["optional-dependencies"]["warmup"]}
    assert declared == {package.replace("_", "-") for package in extra.PACKAGES}
