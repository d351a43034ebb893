"""What GitHub, GitLab and pre-commit read is as they define it, and so is every file to copy."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from ci.manifests import ACTION, HOOKS, ROOT, action, examples, template

from dflash_audit.finding import FailOn
from dflash_audit.pre_commit import CONFIGS, WEIGHTS
from dflash_audit.quantization.resolve import CONFIG_FILES

PAGES = ("github-actions.md", "gitlab-ci.md", "pre-commit.md")
EXAMPLES = [(page, *example) for page in PAGES for example in examples(page)]

SCHEMAS = {
    ".github/workflows": "vendor.github-workflows",
    ".gitlab-ci.yml": "vendor.gitlab-ci",
    "action.yml": "vendor.github-actions",
}


def against_schema(file: str, path: Path) -> subprocess.CompletedProcess[str]:
    schema = next(schema for start, schema in SCHEMAS.items() if file.startswith(start))
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def against_pre_commit(kind: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pre_commit", kind, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_action() -> None:
    done = against_schema("action.yml", ACTION)
    assert done.returncode == 0, done.stdout


def test_the_hooks() -> None:
    done = against_pre_commit("validate-manifest", HOOKS)
    assert done.returncode == 0, done.stdout


def test_the_template(tmp_path: Path) -> None:
    inputs, job = template()
    assert {"source", "package"} == {name for name, given in inputs.items() if "default" not in given}
    # The body alone is what GitLab reads as a pipeline, once the inputs are put in.
    path = tmp_path / "pipeline.yml"
    path.write_text(yaml.safe_dump({"dflash-audit": job}))
    done = against_schema(".gitlab-ci.yml", path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("page", "file", "text"), EXAMPLES)
def test_a_file_to_copy(page: str, file: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / Path(file).name
    path.write_text(text)
    if file == ".pre-commit-config.yaml":
        done = against_pre_commit("validate-config", path)
    else:
        done = against_schema(file, path)
    assert done.returncode == 0, done.stdout
    assert {*_inputs(yaml.safe_load(text))} <= {*action()["inputs"], *template()[0], "files"}


def _inputs(node: Any) -> list[str]:
    """The inputs that an example gives to what is of this project."""
    if isinstance(node, list):
        return [name for item in node for name in _inputs(item)]
    if not isinstance(node, dict):
        return []
    given = [*node.get("inputs", ())] if "remote" in node or "component" in node else []
    given += [*node.get("with", ())] if "dflash-audit" in str(node.get("uses")) else []
    return given + [name for value in node.values() for name in _inputs(value)]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_a_file_to_copy(page: str) -> None:
    assert page in {page for page, _, _ in EXAMPLES}


@pytest.mark.parametrize(
    ("page", "inputs"),
    [("github-actions.md", action()["inputs"]), ("gitlab-ci.md", template()[0])],
)
def test_a_page_lists_every_input(page: str, inputs: dict[str, Any]) -> None:
    rows = re.findall(r"^\| (`.*?`) \|", (ROOT / "docs" / page).read_text(), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([\w-]+)`", row)} == {*inputs}


def test_no_input_is_written_into_a_script() -> None:
    for step in action()["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert {*re.findall(r"\$\{\{ (.*?) \}\}", str(step["env"]))} <= {
            f"inputs.{name}" for name in action()["inputs"]
        }
    assert "$[[" not in str(template()[1]["script"])


def test_the_templates_severities_are_the_audits() -> None:
    assert [*template()[0]["fail-on"]["options"]] == ["", *get_args(FailOn)]


def test_the_hooks_files_are_those_that_the_entry_looks_for() -> None:
    (hook,) = yaml.safe_load(HOOKS.read_text())
    assert hook["files"] == f"(^|/)({WEIGHTS.pattern}|{CONFIGS.pattern})$"
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert hook["entry"] in scripts


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("config.json", True),
        ("drafts/a/config.json", True),
        ("drafts/a/model-00001-of-00002.safetensors", True),
        ("drafts/a/model.safetensors.index.json", True),
        *((f"drafts/a/{name}", True) for names in CONFIG_FILES.values() for name in names),
        ("drafts/a/my_quantize_config.json", True),
        ("tsconfig.json", False),
        ("drafts/a/tokenizer_config.json", False),
        ("drafts/a/config.json.orig", False),
        ("drafts/a/safetensors", False),
        ("drafts/a.safetensors/notes.txt", False),
    ],
)
def test_what_the_hook_is_handed(name: str, taken: bool) -> None:
    (hook,) = yaml.safe_load(HOOKS.read_text())
    assert bool(re.search(hook["files"], name)) == taken


def test_the_constraints_are_in_the_ranges_of_the_project() -> None:
    pinned = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if line[0] != "#"
    )
    names = {name.lower().replace("_", "-") for name in pinned}
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {re.split(r"[<>=!~]", each)[0] for each in dependencies} <= names
