"""Reports to write: of audits, of recorded warm-ups, and with names that try to break out of a format."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

from materialize import materialize
from parity.case import FIXTURES

from dflash_audit.auditing import Request, audit
from dflash_audit.engine_run import Conditions
from dflash_audit.engines import ENGINES
from dflash_audit.errors import Unreadable
from dflash_audit.facts import Facts
from dflash_audit.finding import SEVERITIES, Finding
from dflash_audit.formats import render
from dflash_audit.formats.screen import Screen
from dflash_audit.judge import judge
from dflash_audit.report import Report
from dflash_audit.sources.checkpoint import Origin, Tensor
from dflash_audit.sources.target_files import TargetFiles
from dflash_audit.target import Target
from dflash_audit.warmup.result_json import from_dict

SEED: Final = FIXTURES / "seed-w8a16"
ALL: Final = frozenset(ENGINES)
WARMUPS: Final = sorted(path.parent for path in (FIXTURES / "rules").glob("warmup-*/*/warmup.json"))

HOSTILE: Final = (
    "\x1b[31mred\x07",
    "two\nlines",
    "carriage\rreturn",
    "::error::pwned",
    "name ::error::pwned",
    "\n::add-mask::a",
    "##[add-mask]a",
    "##vso[task.setvariable variable=a]b",
    "%0A::error::pwned",
    "<script>alert(1)</script>",
    "</details>",
    "<!-- ",
    "]]>",
    "&lt;b&gt;",
    "a|b",
    "a\\|b",
    "`tick`",
    "``two``",
    "` `",
    "*bold* __strong__ ~~gone~~",
    "@everyone",
    "#1",
    "GH-1",
    "0123abc",
    "[click](https://evil.example)",
    "![image](https://evil.example/a.png)",
    "<https://evil.example>",
    "https://evil.example",
    "www.evil.example",
    "mail@evil.example",
    "- item",
    "1. item",
    "# heading",
    "> quote",
    "---",
    "{0}",
    "\u202etxt.exe",
    "\u2028separator",
    "\ud800",
    "\ufffe",
    " ",
    "",
    "x" * 5_000,
)
"""Names as a checkpoint may have them."""


def written(name: str, report: Report, width: int = 100) -> str:
    return render(name, report, Screen(width))


def audited(source: Path = SEED, gating: frozenset[str] = ALL) -> Report:
    return audit(Request(str(source), gating))


def unreadable() -> Report:
    return Report(Origin("local", "nothing"), error=Unreadable("no-such-source", "nothing", "is not there"))


def warmed(folder: Path, scratch: Path) -> Report:
    """An audit of the case of a rule's folder, with the warm-up that is recorded beside it."""
    wanted = json.loads((folder / "rule.json").read_text())
    warmup = from_dict(json.loads((folder / "warmup.json").read_text()))
    report = audited(materialize(FIXTURES / wanted["case"], scratch), frozenset({warmup.engine}))
    assert report.checkpoint is not None
    facts = Facts(report.checkpoint, report.runs, report.gating, Conditions(), (warmup,))
    findings, skips = judge(facts)
    return replace(report, findings=tuple(findings), skips=tuple(skips), warmups=(warmup,))


def of(*findings: Finding) -> Report:
    """The seed's report with other findings."""
    return replace(audited(), findings=findings)


def hostile() -> Report:
    """Every hostile name in all that a finding has of a checkpoint, and in all that is told of a target."""
    return replace(_hostile_findings(), conditions=Conditions(target=hostile_target()))


def hostile_target() -> Target:
    config = {
        "architectures": [*HOSTILE],
        "model_type": "".join(HOSTILE[:-1]),
        "quantization_config": {"quant_method": " ".join(HOSTILE)},
    }
    tensors = tuple(Tensor(f"{name}.lm_head.weight", "BF16", (1, 1), name) for name in HOSTILE)
    return Target(TargetFiles(Origin("local", " ".join(HOSTILE)), config, None, tensors, 0))


def _hostile_findings() -> Report:
    return of(
        *(
            Finding(
                rule="dropped-tensor",
                severity=SEVERITIES[number % 3],
                engine=("sglang-0.5.23", "sglang-next", None)[number % 3],
                subject=name,
                message=f"{name} It says {name}, ({name}) and '{name}'.",
                hint=f"Mend {name}: {name}",
                subjects=(name, f"{name}.weight"),
            )
            for number, name in enumerate((*HOSTILE, *HOSTILE, "last"))
        )
    )
