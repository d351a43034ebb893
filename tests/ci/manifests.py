"""The manifests that other systems read, and the YAML of the pages that show how to use them."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
TEMPLATE = ROOT / "templates" / "dflash-audit.yml"


def action() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load(ACTION.read_text())
    return parsed


def template() -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs of the template, and its one job as it stands, inputs not yet put in."""
    head, body = yaml.safe_load_all(TEMPLATE.read_text())
    (job,) = body.values()
    return head["spec"]["inputs"], job


def examples(page: str) -> list[tuple[str, str]]:
    """The YAML blocks of a page: the file that the first line names, and the text."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)
    return [(block.splitlines()[0].removeprefix("# "), block) for block in blocks]
