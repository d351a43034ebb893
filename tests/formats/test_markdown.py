"""The Markdown of a report, as a model card or a discussion would have it."""

from dataclasses import replace
from pathlib import Path

import pytest
from formats.reports import SEED, audited, of, unreadable, warmed, written
from materialize import materialize
from test_cli import FIXTURES, name_class

from dflash_audit.errors import Unreadable
from dflash_audit.finding import Finding

NEXT = frozenset({"sglang-next"})
RELEASE = frozenset({"sglang-0.5.23"})


def lines(report: str) -> list[str]:
    return report.split("\n")


def test_the_verdicts_stand_first_and_the_deciding_engine_above() -> None:
    said = lines(written("markdown", audited(gating=RELEASE)))
    assert said[0] == "## DFlash draft audit: does not serve"
    at = said.index("| engine | verdict | because of |")
    assert said[at + 2] == "| **sglang-0.5.23** | ❌ does not serve | error `dropped-tensor` |"
    older = "| sglang-0.5.19 (does not count) | ❌ does not serve | error `dropped-tensor` |"
    assert said[at + 3] == older
    assert said[at + 4] == "| sglang-next (does not count) | ✅ serves |  |"
    assert lines(written("markdown", audited(gating=NEXT)))[0] == "## DFlash draft audit: serves"


def test_what_does_not_count_is_folded_away_and_comes_last() -> None:
    said = written("markdown", audited(gating=NEXT))
    folded = said[said.index("<details>") : said.index("</details>")]
    assert folded.startswith(
        "<details><summary>sglang-0.5.19 and sglang-0.5.23, which do not count: 4 errors, 1 warning</summary>"
    )
    assert said.index("**warning** `engines-disagree`") < said.index("<details>")
    assert "<details>" not in written("markdown", audited())


def test_what_to_do_next() -> None:
    said = lines(written("markdown", audited()))
    first = said[said.index("### Next") + 2]
    assert first.startswith('1. `re:.*self_attn\\.(q|k|v)_proj$`: Add `"re:(.*\\\\.)?qkv_proj$"` to ignore.')
    then = said[said.index("### Then, if an error is left") + 2]
    assert then.startswith("1. `fc.{weight_packed,weight_scale,weight_shape}`, `fc.weight`: Quantize again, ")
    assert "### Serve it on sglang-next" not in said
    serving = written("markdown", audited(gating=NEXT))
    assert "```sh\npython -m sglang.launch_server --model-path TARGET \\\n    --spec" in serving


def test_as_a_terminal_tells_it_once_for_all_that_are_alike() -> None:
    same = [
        Finding("tap-order", "error", engine, name, "It is so.", "Mend it.")
        for engine in ("sglang-0.5.23", "sglang-next")
        for name in ("a.b", "c.d")
    ]
    said = written("markdown", of(*same))
    assert (
        "### sglang-0.5.23 and sglang-next\n\n**error** `tap-order`\n\n- `a.b`, `c.d`\\\n  It is so" in said
    )
    assert said.count("It is so") == 1


@pytest.mark.parametrize("number", [200, 5_000])
def test_it_fits_into_a_comment(number: int) -> None:
    many = [
        Finding(
            "tap-order",
            ("error", "warning")[n % 2],
            "sglang-next",
            f"name.{n}" * 40,
            f"Word {n}.",
            f"Do {n}.",
        )
        for n in range(number)
    ]
    said = written("markdown", of(*many))
    assert 40_000 < len(said) < 65_536
    shown = said.count("\n  Word ")
    (left,) = [line for line in lines(said) if line.startswith("*Left out of this page: ")]
    if number == 200:
        assert left == f"*Left out of this page: {200 - shown} warnings; `--format json` has them all.*"
    assert lines(said)[-1].endswith(
        "that count (sglang-0.5.19, sglang-0.5.23, sglang-next, vllm-0.33.0), exit code 1,"
        " dflash-audit 0.1.0*"
    )


def test_a_warm_up(tmp_path: Path) -> None:
    folder = FIXTURES / "rules" / "warmup-died"
    bad = next(path for path in sorted(folder.iterdir()) if path.name.startswith("bad-"))
    said = written("markdown", warmed(bad, tmp_path))
    assert "### Warm-up\n\n- **sglang-" in said
    assert "does not run as it should: " in said


def test_what_was_not_read_or_not_judged(tmp_path: Path) -> None:
    assert "**Not everything could be done:** nothing: is not there" in written("markdown", unreadable())
    source = materialize(FIXTURES / "cases" / "dense-dspark", tmp_path)
    name_class(source, "Lfm2DSparkDraftModel")
    said = written("markdown", audited(source, NEXT))
    assert said.startswith("## DFlash draft audit: not replayed\n")
    assert "Not judged on sglang-next, which is no pass: " in said
    failed = replace(audited(SEED, NEXT), error=Unreadable("out-of-memory", "sglang-next", "no room"))
    assert "**Not everything could be done:** sglang-next: no room" in written("markdown", failed)
