"""What is known does not fail an audit; what is new does."""

import json
from pathlib import Path
from typing import Any

import pytest
from materialize import write_zeros
from report_schema import valid
from test_cli import SEED, run

RELEASE = ("--engine", "sglang-0.5.23")


def audited(folder: Path, *words: str) -> dict[str, Any]:
    done = run(folder.name, *RELEASE, *words, "--json", cwd=folder.parent)
    said: dict[str, Any] = valid(json.loads(done.stdout))
    assert said["summary"]["exit_code"] == done.returncode
    return said


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    """The seed, whose stray tensors `strays` writes."""
    folder = tmp_path / "draft"
    folder.mkdir()
    (folder / "config.json").write_bytes((SEED / "config.json").read_bytes())
    strays(folder, 0, 1)
    return folder


def strays(folder: Path, *layers: int) -> None:
    """The seed's tensors and, in these layers, one that no engine has."""
    size = int.from_bytes((SEED / "model.safetensors").read_bytes()[:8], "little")
    header = json.loads((SEED / "model.safetensors").read_bytes()[8 : 8 + size])
    tensors = {name: (t["dtype"], t["shape"]) for name, t in header.items() if name != "__metadata__"}
    more = {f"layers.{layer}.stray.weight": ("BF16", [2]) for layer in layers}
    write_zeros(folder / "model.safetensors", {**tensors, **more})


def stray(said: dict[str, Any]) -> list[tuple[list[str], bool]]:
    """The subjects of the findings about strays, and whether they are known."""
    return [
        (f["subjects"], f["known"])
        for f in said["findings"]
        if f["engine"] == "sglang-0.5.23" and any("stray" in name for name in f["subjects"])
    ]


def test_what_is_written_is_known_from_then_on(draft: Path) -> None:
    before = audited(draft)["summary"]
    assert (before["exit_code"], before["known"]) == (1, 0)
    everything = before["errors"] + before["warnings"] + before["notes"]
    for words in (["--write-baseline", "known.json"], ["--baseline", "known.json"]):
        after = audited(draft, *words)
        assert after["summary"] == {
            "errors": 0, "warnings": 0, "notes": 0, "exit_code": 0, "known": everything, "ignored": 0,
        }  # fmt: skip
        assert after["engines"][0]["verdict"] == "fail"
    assert audited(draft, "--baseline", "known.json", "--fail-on", "note")["summary"]["exit_code"] == 0


def test_what_got_smaller_stays_known_and_what_grew_is_new(draft: Path) -> None:
    audited(draft, "--write-baseline", "known.json")
    strays(draft, 1)
    assert audited(draft, "--baseline", "known.json")["summary"]["exit_code"] == 0
    strays(draft, 0, 1, 7)
    grown = audited(draft, "--baseline", "known.json")
    assert grown["summary"]["exit_code"] == grown["summary"]["errors"] == 1
    assert stray(grown) == [
        (["layers.7.stray.weight"], False),
        (["layers.0.stray.weight", "layers.1.stray.weight"], True),
    ]


def test_another_engine_and_another_source_are_not_known(draft: Path) -> None:
    audited(draft, "--write-baseline", "known.json")
    assert audited(draft, "--baseline", "known.json", "--engine", "all")["summary"]["exit_code"] == 1
    draft.rename(draft.parent / "other")
    assert audited(draft.parent / "other", "--baseline", "known.json")["summary"]["known"] == 0


def test_a_known_warning_that_becomes_an_error_is_new(draft: Path) -> None:
    audited(draft, "--write-baseline", "known.json")
    path = draft.parent / "known.json"
    known = json.loads(path.read_text())
    for finding in known["findings"]:
        finding["severity"] = "warning"
    path.write_text(json.dumps(known))
    assert audited(draft, "--baseline", "known.json")["summary"]["exit_code"] == 1


def test_what_is_ignored_is_not_written(draft: Path) -> None:
    audited(draft, "--write-baseline", "known.json", "--ignore", "dropped-tensor")
    rules = {entry["rule"] for entry in json.loads((draft.parent / "known.json").read_text())["findings"]}
    assert rules == {"unfilled-parameter", "dead-ignore-entry"}


def test_a_baseline_is_brought_up_to_date(draft: Path) -> None:
    audited(draft, "--write-baseline", "known.json")
    strays(draft)
    audited(draft, "--baseline", "known.json", "--write-baseline", "known.json")
    assert "stray" not in (draft.parent / "known.json").read_text()
    strays(draft, 0)
    assert audited(draft, "--baseline", "known.json")["summary"]["errors"] == 1


@pytest.mark.parametrize("before", [None, "{}", '{"dflash_audit_baseline": 99, "findings": []}'])
def test_the_baseline_of_the_settings_is_written_whatever_is_there(before: str | None, draft: Path) -> None:
    folder = draft.parent
    (folder / ".dflash-audit.toml").write_text('baseline = "known.json"\n')
    if before is not None:
        (folder / "known.json").write_text(before)
    words = (draft.name, *RELEASE)
    assert run(*words, cwd=folder).returncode == 2
    assert run(*words, "--write-baseline", "./other.json", cwd=folder).returncode == 2
    assert run(*words, "--write-baseline", "./known.json", cwd=folder).returncode == 0
    assert run(*words, cwd=folder).returncode == 0


def test_sarif_suppresses_what_is_known_and_text_marks_it(draft: Path) -> None:
    audited(draft, "--write-baseline", "known.json")
    words = (draft.name, *RELEASE, "--baseline", "known.json")
    (sarif,) = json.loads(run(*words, "--format", "sarif", cwd=draft.parent).stdout)["runs"]
    for result in sarif["results"]:
        known = result["properties"]["engine"] in ("sglang-0.5.23", None)
        assert [s["kind"] for s in result["suppressions"]] == (["external"] if known else [])
    assert "error dropped-tensor (known)" in run(*words, cwd=draft.parent).stdout
    assert (
        "**error** `dropped-tensor` (known)" in run(*words, "--format", "markdown", cwd=draft.parent).stdout
    )
    assert json.loads(run(*words, "--format", "gitlab", cwd=draft.parent).stdout) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read: No such file"),
        ("", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "--write-baseline makes one"),
        ('{"dflash_audit_baseline": 2, "findings": []}', "of version 2, and this is for 1"),
        ('{"dflash_audit_baseline": true, "findings": []}', "of version true"),
        ('{"dflash_audit_baseline": 1}', "findings are no list"),
        ('{"dflash_audit_baseline": 1, "findings": [1]}', "without its fingerprint or severity"),
        ('{"dflash_audit_baseline": 1, "findings": [{"fingerprint": "a", "severity": "x"}]}', "severity"),
    ],
)
def test_a_broken_baseline_is_a_usage_error(text: str | None, says: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "known.json").write_text(text)
    done = run(str(SEED), "--baseline", "known.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "known.json: " in done.stderr
    assert says in done.stderr


def test_a_baseline_that_cannot_be_written(tmp_path: Path) -> None:
    done = run(str(SEED), "--json", "--write-baseline", "no-folder/known.json", cwd=tmp_path)
    assert done.returncode == 3
    assert valid(json.loads(done.stdout))["error"]["kind"] == "unwritable-file"
    assert "there is no folder" in done.stderr


def test_of_what_could_not_be_read_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "known.json").write_text("as it was")
    assert run("./none", "--write-baseline", "known.json", cwd=tmp_path).returncode == 3
    assert (tmp_path / "known.json").read_text() == "as it was"
