"""The report that a person reads: it fits the screen, and its end says what to do."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from materialize import materialize
from test_cli import FIXTURES, SEED, name_class, report, run

from dflash_audit.engines import ENGINES


def lines_of(*words: str, columns: str = "100") -> list[str]:
    done: subprocess.CompletedProcess[str] = run(*words, COLUMNS=columns)
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
    lines = lines_of(str(materialize(FIXTURES / "cases" / "selector-keys-lost", tmp_path)))
    assert '"selector_rank": 16' in " ".join(after("Next", lines))
    assert "a lost dflash_config" in after("Then, if an error is left", lines)[0]


@pytest.mark.parametrize(
    ("case", "counted"),
    [
        ("dense-minimax2", "0 errors, 0 warnings, 1 note that counts (sglang-next)"),
        ("extra-head-embed", "0 errors, 0 warnings, 2 notes that count (sglang-next)"),
        ("dense-laguna", "0 errors, 1 warning, 0 notes that count (sglang-next)"),
    ],
)
def test_what_counts_is_said_in_grammar(case: str, counted: str, tmp_path: Path) -> None:
    assert counted in lines_of(str(materialize(FIXTURES / "cases" / case, tmp_path)))


def test_every_engine_and_rule_proposes_the_same_class(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "dense-dspark", tmp_path)
    name_class(source, "NoSuchDraft")
    found = [f for f in report(str(source))["findings"] if f["rule"] in ("unknown-class", "wrong-class")]
    assert {f["rule"] for f in found} == {"unknown-class", "wrong-class"}
    assert {f["engine"] for f in found if f["rule"] == "unknown-class"} == {*ENGINES}
    assert {f["hint"] for f in found} == {'Set architectures to ["Qwen3DSparkModel"].'}


def test_a_reader_that_leaves_does_not_change_the_exit_code() -> None:
    command = f"{sys.executable} -m dflash_audit {SEED} --json | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{0\n", "")


def test_engines_that_do_not_count_are_marked() -> None:
    verdicts = {line.split()[0]: line for line in lines_of(str(SEED)) if line.startswith("  sglang-")}
    assert "(does not count)" not in verdicts["sglang-next"]
    assert "vllm-0.33.0 (does not count)" in lines_of(str(SEED))


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


def test_what_two_engines_share_is_told_and_counted_once(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "target-ids-range", tmp_path)
    lines = lines_of(str(source), "--engine", "all")
    told = [line for line in lines if line.startswith("  error ")]
    assert told == ["  error refused-build"]
    section = lines[lines.index("sglang-0.5.19, sglang-0.5.23 and sglang-next") :]
    assert section[3].startswith("      The engine does not start with this draft: ")
    assert not any("sglang-" in line for line in section[1:-3])
    engines = "sglang-0.5.19, sglang-0.5.23, sglang-next, vllm-0.33.0"
    assert f"1 error, 0 warnings, 0 notes that count ({engines})" in " ".join(lines)
    summary = report(str(source), "--engine", "all")["summary"]
    assert summary["errors"] == 3


def test_what_one_engine_has_alone_names_it(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "ct-dflash2-fp8dyn_all", tmp_path)
    lines = lines_of(str(source), "--engine", "all")
    section = lines[lines.index("sglang-0.5.19 and sglang-0.5.23") :]
    assert any("copies float8_e4m3fn numbers" in line for line in section)
    assert "2 errors, " in " ".join(section)


@pytest.mark.parametrize(
    "case", ["cases/ct-dflash2-w8a16_q_only", "cases/ct-dflash2-fp8dyn_all", "cases/kv-heads-wrong"]
)
def test_a_step_is_an_action_and_said_once(case: str, tmp_path: Path) -> None:
    source = materialize(FIXTURES / case, tmp_path)
    text = " ".join(line.strip() for line in lines_of(str(source), "--engine", "all"))
    steps = re.split(r" \d+\. ", re.split(r" Next | Then, if an error is left ", text, maxsplit=1)[1])
    mends = [re.split(r": ", step, maxsplit=1)[1] for step in steps if ": " in step]
    assert mends
    assert len(set(mends)) == len(mends)
    assert all(re.match(r"(Add|Ignore|Keep|Quantize|Set) ", mend) for mend in mends)


def test_a_long_mend_stands_in_the_findings_once(tmp_path: Path) -> None:
    """What it is for elsewhere refers to it; the steps at the end say it once more."""
    source = materialize(FIXTURES / "rules/dropped-tensor/bad-dense-and-not-ignored", tmp_path / "draft")
    lines = lines_of(str(source), "--engine", "all")
    text = " ".join(" ".join(lines[: lines.index("Next")]).split())
    assert text.count("build every linear as it is on disk") == 1
    assert re.search(r"fix: as for \S+, above", text)


def test_a_step_names_all_that_it_is_for(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "ct-dflash2-w8a16_q_only", tmp_path)
    lines = lines_of(str(source), "--engine", "sglang-0.5.23")
    first, second, *_ = after("Then, if an error is left", lines)
    named = "  1. fc.{weight_packed,weight_scale,weight_shape}, fc.weight: Quantize again, with this layer"
    assert f"{first} {second.strip()}".startswith(named)


@pytest.mark.parametrize("columns", ["40", "80", "83"])
def test_the_exit_code_is_not_torn_apart(columns: str) -> None:
    lines = lines_of(str(SEED), "--engine", "all", columns=columns)
    assert lines[-1] == "exit code 1"


@pytest.mark.parametrize(
    ("case", "mend"),
    [
        ("cases/target-ids-range", "Mend target_layer_ids; a lost dflash_config"),
        ("cases/selector-keys-lost", "Mend dflash_config.selector_rank; a lost dflash_config"),
        ("cases/act-gelu", "Mend hidden_act in config.json"),
    ],
)
def test_the_step_after_a_refused_build_names_the_field(case: str, mend: str, tmp_path: Path) -> None:
    lines = lines_of(str(materialize(FIXTURES / case, tmp_path)))
    assert any(f"DFlash2DraftModel: {mend}" in line for line in lines[lines.index("Next") :])


@pytest.mark.parametrize(
    ("gone", "beside"),
    [
        ((), ""),
        (("selector_top_k",), ", with selector_top_k in dflash_config"),
        (("selector_rank", "selector_top_k"), ", with selector_rank and selector_top_k in dflash_config"),
    ],
)
def test_a_wrong_class_asks_for_the_keys_that_are_not_there(
    gone: tuple[str, ...], beside: str, tmp_path: Path
) -> None:
    source = materialize(FIXTURES / "cases" / "dflash2-as-dflash1", tmp_path)
    path = source / "config.json"
    config = json.loads(path.read_text())
    for key in gone:
        del config["dflash_config"][key]
    path.write_text(json.dumps(config))
    hints = {f["hint"] for f in report(str(source))["findings"] if f["rule"] == "wrong-class"}
    assert hints == {f'Set architectures to ["DFlash2DraftModel"]{beside}.'}


@pytest.mark.parametrize("columns", ["60", "72", "80", "90", "110"])
@pytest.mark.parametrize("case", ["differences/29-kernel-projection-not-ignored", "cases/gptq-all"])
def test_what_does_not_count_is_marked_in_one_piece(columns: str, case: str, tmp_path: Path) -> None:
    lines = lines_of(str(materialize(FIXTURES / case, tmp_path)), columns=columns)
    table = lines[: lines.index("All engines")]
    assert sum(line.count("(does not count)") for line in table) == 3
    assert max(map(len, table[2:])) <= int(columns)


def test_a_superseded_release_is_told_with_the_later_one(tmp_path: Path) -> None:
    """What they differ in is the mend alone, which nobody works out for a release that is followed."""
    source = materialize(FIXTURES / "cases" / "ct-dflash2-w8a16_seed", tmp_path)
    headings = [line for line in lines_of(str(source)) if line.startswith("sglang-")]
    assert headings == ["sglang-0.5.19 and sglang-0.5.23 (do not count)"]
    alone = lines_of(str(source), "--engine", "sglang-0.5.19")
    assert "sglang-0.5.19 and sglang-0.5.23" in alone


def test_three_engines_are_listed_as_a_sentence_has_them(tmp_path: Path) -> None:
    lines = lines_of(str(materialize(FIXTURES / "differences" / "09-midlayer", tmp_path)))
    assert "sglang-next, sglang-0.5.19 and sglang-0.5.23" in lines
