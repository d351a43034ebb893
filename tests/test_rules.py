"""Every rule on its cases: where it must speak, and where it must stay quiet.

`fixtures/rules/RULE/bad-NAME` and `…/good-NAME` hold a case each, or name one
elsewhere in `fixtures/`. Their rule.json says the engine that the finding is
for (null for a rule over all engines) and, for a bad one, a part of a subject;
where it holds `says`, a part of the message or the hint; `gpu` is another card
than the default one, `tp` other ranks, and `target` the model that the draft is
served with: its `config`, its `tensors` and, where it has one, its
`hf_quant_config`. A folder of a rule of the warm-up holds in `warmup.json`
what a report said of one, seen or thought up.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from materialize import materialize, write_zeros
from parity.case import FIXTURES, Case
from report_schema import valid

from dflash_audit.cards import CARDS, DEFAULT_CARD
from dflash_audit.engine_run import Conditions
from dflash_audit.engines import DEFAULT, engine
from dflash_audit.rules import RULES, WARMUP_RULES, finder
from dflash_audit.sources.disk import read_path
from dflash_audit.warmup.result_json import from_dict

FOLDERS = sorted((FIXTURES / "rules").glob("*/*/rule.json"))
BAD = [path.parent for path in FOLDERS if path.parent.name.startswith("bad-")]
GOOD = [path.parent for path in FOLDERS if path.parent.name.startswith("good-")]


def name(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


def wanted(folder: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((folder / "rule.json").read_text())
    return said


def found(folder: Path, scratch: Path) -> list[dict[str, Any]]:
    """The findings of the folder's rule on its case, or on its warm-up, for its engine."""
    if folder.parent.name in WARMUP_RULES:
        return of_warmup(folder, scratch)
    engine = wanted(folder)["engine"]
    case = Case(FIXTURES / wanted(folder)["case"] if "case" in wanted(folder) else folder)
    changed = {"capability": CARDS[wanted(folder).get("gpu", DEFAULT_CARD)]}
    changed |= {"tp": wanted(folder)["tp"]} if "tp" in wanted(folder) else {}
    target = (
        write_target(scratch / "target", wanted(folder)["target"]) if "target" in wanted(folder) else None
    )
    gating = frozenset({engine or DEFAULT})
    report = valid(case.report(scratch / "draft", gating, target=target, **changed))
    return [f for f in report["findings"] if (f["rule"], f["engine"]) == (folder.parent.name, engine)]


def write_target(folder: Path, target: dict[str, Any]) -> Path:
    """A target's folder."""
    folder.mkdir(parents=True)
    for name in ("config", "hf_quant_config"):
        if name in target:
            (folder / f"{name}.json").write_text(json.dumps(target[name]))
    if "tensors" in target:
        write_zeros(folder / "model.safetensors", target["tensors"])
    return folder


def of_warmup(folder: Path, scratch: Path) -> list[dict[str, Any]]:
    """The findings of the folder's rule on its warm-up of the draft of its case."""
    warmup = from_dict(json.loads((folder / "warmup.json").read_text()))
    assert warmup.engine == wanted(folder)["engine"]
    checkpoint = read_path(materialize(FIXTURES / wanted(folder)["case"], scratch))
    run = engine(warmup.engine).replay(checkpoint, Conditions())
    return [asdict(finding) for finding in finder(folder.parent.name)(warmup, run)]


@pytest.mark.parametrize("folder", BAD, ids=name)
def test_bad(folder: Path, tmp_path: Path) -> None:
    """It speaks of the subject, and every finding says the fact, and most say the mend."""
    want, findings = wanted(folder), found(folder, tmp_path)
    for finding in findings:
        assert finding["message"].endswith(".")
        assert finding["hint"] or finding["severity"] == "note"
    hits = [
        finding
        for finding in findings
        if any(want["subject"] in subject for subject in (finding["subject"], *finding["subjects"]))
    ]
    assert hits
    assert any(want.get("says", "") in f"{finding['message']} {finding['hint']}" for finding in hits)


@pytest.mark.parametrize("folder", GOOD, ids=name)
def test_good(folder: Path, tmp_path: Path) -> None:
    assert found(folder, tmp_path) == []


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_bad_and_a_good_case(rule: str) -> None:
    assert any(folder.parent.name == rule for folder in BAD)
    assert any(folder.parent.name == rule for folder in GOOD)


def test_every_folder_is_of_a_rule() -> None:
    assert {path.name for path in (FIXTURES / "rules").iterdir()} <= {*RULES}
