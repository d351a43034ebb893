"""Several tensor parallel sizes in one audit: what holds at which of them, told once."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from materialize import materialize
from test_cli import FIXTURES, report, run

from dflash_audit.finding import Finding
from dflash_audit.several_sizes import AtSize, listed, merged

BLOCKS = FIXTURES / "rules" / "rank-limit" / "bad-four-ranks"


@pytest.fixture
def draft(tmp_path: Path) -> str:
    """One that is served on one rank and on two, whose blocks do not divide among more."""
    return str(materialize(BLOCKS, tmp_path / "draft"))


def of_rule(said: dict[str, Any], rule: str, engine: str = "sglang-next") -> list[dict[str, Any]]:
    return [finding for finding in said["findings"] if (finding["rule"], finding["engine"]) == (rule, engine)]


def test_each_size_has_its_verdict(draft: str) -> None:
    said = report(draft, "--tp", "1,2,4,8")
    [engine] = [engine for engine in said["engines"] if engine["gating"]]
    assert [(each["tp"], each["verdict"] == "fail") for each in engine["verdicts"]] == [
        (1, False), (2, False), (4, True), (8, True)
    ]  # fmt: skip
    assert engine["verdict"] == "fail" and said["summary"]["exit_code"] == 1


def test_a_finding_of_some_sizes_says_so_once(draft: str) -> None:
    said = report(draft, "--tp", "1,2,4,8")
    for rule in ("refused-build", "rank-limit"):
        [finding] = of_rule(said, rule)
        assert finding["tp"] == [4, 8]
        assert finding["message"].startswith("At --tp 4 and 8: ")
    assert of_rule(said, "rank-limit")[0]["subjects"] == ["--tp 4", "--tp 8"]


def test_a_finding_of_all_sizes_is_as_with_one(draft: str) -> None:
    together, alone = report(draft, "--tp", "4,8"), report(draft, "--tp", "4")
    assert of_rule(together, "refused-build") == of_rule(alone, "refused-build")
    assert of_rule(together, "refused-build")[0]["tp"] is None


def test_parameters_are_those_of_the_first_size(draft: str) -> None:
    for sizes in ("2,1", "1,2"):
        first = report(draft, "--tp", sizes)["engines"][0]["parameters"]
        assert first == report(draft, "--tp", sizes[0])["engines"][0]["parameters"]


@pytest.mark.parametrize(
    ("sizes", "code"), [("1", 0), ("1,2", 0), ("2, 1", 0), ("4", 1), ("1,4", 1), ("4,1", 1)]
)
def test_the_exit_code_counts_every_size(sizes: str, code: int, draft: str) -> None:
    assert run(draft, "--tp", sizes).returncode == code


def test_the_report_for_a_person_says_at_which(draft: str) -> None:
    for form in ("text", "markdown", "html"):
        assert "with --tp 4 and 8" in run(draft, "--tp", "1,2,4,8", "--format", form, COLUMNS="200").stdout


@pytest.mark.parametrize(
    "sizes", ["0", "abc", "", "1,", "1,1", "2,2,4", "-1", "1.5", "1 2", "٣", "100000", "1,0"]
)
def test_what_is_no_size_is_a_usage_error(sizes: str, draft: str) -> None:
    done = run(draft, f"--tp={sizes}")
    assert done.returncode == 2 and done.stdout == ""
    assert "--tp" in done.stderr


def test_a_warm_up_runs_one_rank() -> None:
    done = run(str(FIXTURES / "seed-bf16"), "--tp", "1,2", "--warmup")
    assert done.returncode == 2 and "one rank" in done.stderr


def at(tp: int, *findings: Finding) -> AtSize:
    return AtSize(tp, (), findings)


def finding(message: str, subject: str = "s", severity: Any = "error") -> Finding:
    return Finding("rule", severity, "engine", subject, message, None, (subject,))


def test_sizes_are_merged_by_what_a_finding_is_about() -> None:
    found = merged(
        [
            at(1, finding("at one."), finding("the same.", "u")),
            at(2, finding("at more."), finding("of another.", "t"), finding("the same.", "u")),
            at(4, finding("at more."), finding("of another.", "t"), finding("the same.", "u")),
            at(8, finding("milder.", "s", "warning"), finding("the same.", "u")),
        ]
    )
    assert [(each.message, each.ranks) for each in found] == [
        ("At --tp 1: at one. At --tp 2 and 4: at more.", (1, 2, 4)),
        ("the same.", ()),
        ("At --tp 2 and 4: of another.", (2, 4)),
        ("At --tp 8: milder.", (8,)),
    ]


def test_what_holds_at_all_sizes_says_where_its_words_differ() -> None:
    hinted = [
        replace(finding(f"{n} numbers."), hint=hint) for n, hint in ((8, "Mend."), (4, "Mend or wait."))
    ]
    [found] = merged([at(1, hinted[0]), at(2, hinted[1])])
    assert found.message == "At --tp 1: 8 numbers. At --tp 2: 4 numbers."
    assert found.hint == "At --tp 1: Mend. At --tp 2: Mend or wait."
    assert found.ranks == () and found.subjects == ("s",)


def test_a_finding_about_the_size_names_each() -> None:
    about = [replace(finding("not so many.", f"--tp {tp}"), about_size=True) for tp in (4, 8)]
    [found] = merged([at(4, about[0]), at(8, about[1])])
    assert (found.subject, found.subjects) == ("--tp 4 and 8", ("--tp 4", "--tp 8"))
    apart = merged([at(4, finding("a.", "--tp 4")), at(8, finding("a.", "--tp 8"))])
    assert [each.subject for each in apart] == ["--tp 4", "--tp 8"]


def test_no_size_is_told_of_another(draft: str) -> None:
    [limit] = of_rule(report(draft, "--tp", "1,2,4,8,16"), "rank-limit")
    assert limit["subject"] == "--tp 4, 8 and 16" and limit["tp"] == [4, 8, 16]
    assert limit["message"].startswith("At --tp 4, 8 and 16: ") and limit["message"].count("--tp 4") == 1


def test_sizes_as_a_person_reads_them() -> None:
    assert [listed(ranks) for ranks in ([4], [1, 2], [1, 2, 4])] == [
        "--tp 4",
        "--tp 1 and 2",
        "--tp 1, 2 and 4",
    ]
