"""The report that a person reads: it fits the screen, and its end says what to do."""

import subprocess
import sys
from pathlib import Path

import pytest
from materialize import materialize
from test_cli import FIXTURES, SEED, name_class, run


def lines_of(*words: str) -> list[str]:
    done: subprocess.CompletedProcess[str] = run(*words)
    assert done.stderr == ""
    return done.stdout.splitlines()


def after(heading: str, lines: list[str]) -> list[str]:
    """The lines below a heading, up to the next empty one."""
    below = lines[lines.index(heading) + 1 :]
    return below[: below.index("")]


def test_the_lines_fit_the_screen() -> None:
    assert max(map(len, lines_of(str(SEED), "--engine", "all"))) <= 100


def test_a_pass_ends_with_the_command_that_serves_it_on_one_line_each(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "dense-dflash2", tmp_path / ("long name " * 12).strip())
    lines = lines_of(str(source), "--tp", "2")
    command = after("Serve it on sglang-next with", lines)
    assert command == [
        "    python -m sglang.launch_server --model-path TARGET \\",
        "    --speculative-algorithm DFLASH \\",
        f"    --speculative-draft-model-path '{source}' \\",
        "    --speculative-dflash-block-size 8 \\",
        "    --tp 2",
    ]
    assert "exit code 0" in lines[-1]


def test_a_fail_ends_with_what_to_do_the_cause_first() -> None:
    lines = lines_of(str(SEED), "--engine", "sglang-0.5.23")
    first, *_ = after("Next", lines)
    assert first.startswith("  1. re:.*self_attn\\.(q|k|v)_proj$: Add ")
    assert lines[-1].endswith("exit code 1")


def test_what_follows_from_a_named_cause_comes_last(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "dense-dspark", tmp_path)
    name_class(source, "NoSuchDraft")
    lines = lines_of(str(source))
    assert "Qwen3DSparkModel" in after("Next", lines)[0]
    assert "that this engine has" in after("Then, if an error is left", lines)[0]


def test_a_reader_that_leaves_does_not_change_the_exit_code() -> None:
    command = f"{sys.executable} -m dflash_audit {SEED} --json | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{0\n", "")


def test_engines_that_do_not_count_are_marked() -> None:
    verdicts = {line.split()[0]: line for line in lines_of(str(SEED)) if line.startswith("  sglang-")}
    assert "(does not count)" not in verdicts["sglang-next"]
    assert "sglang-0.5.23 (does not count)" in lines_of(str(SEED))


@pytest.mark.parametrize(
    ("architecture", "says"),
    [
        ("Lfm2DSparkDraftModel", "Not judged on sglang-next, which is no pass"),
        ("NoSuchDraft", 'architectures ["NoSuchDraft"]'),
    ],
)
def test_a_draft_that_no_engine_builds(architecture: str, says: str, tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "dense-dspark", tmp_path)
    name_class(source, architecture)
    assert any(says in line for line in lines_of(str(source)))
