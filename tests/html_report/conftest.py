"""A browser and the pages that it opens."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from html_report.browser import CHROMIUM, Browser
from materialize import copy_beside, materialize, write_zeros

from dflash_audit.auditing import Request, audit
from dflash_audit.formats import render
from dflash_audit.formats.screen import Screen
from dflash_audit.report import Report

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("needs a Chromium")
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Report]:
    """The report of a fixture, by its path in `fixtures`."""

    def report(name: str) -> Report:
        case = FIXTURES / name
        stored = (case / "tensors.json").exists()
        folder = materialize(case, tmp_path_factory.mktemp("drafts") / case.name) if stored else case
        return audit(Request(str(folder)))

    return report


@pytest.fixture(scope="session")
def with_tensors(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, Mapping[str, tuple[str, list[int]]]], Report]:
    """The report of a fixture's config with these tensors beside its own."""

    def report(name: str, more: Mapping[str, tuple[str, list[int]]]) -> Report:
        folder = tmp_path_factory.mktemp("drafts") / "draft"
        copy_beside(FIXTURES / name, folder)
        own = audit(Request(str(FIXTURES / name))).checkpoint
        assert own is not None
        tensors = {tensor.name: (tensor.dtype, list(tensor.shape)) for tensor in own.tensors}
        write_zeros(folder / "model.safetensors", {**tensors, **more})
        return audit(Request(str(folder)))

    return report


@pytest.fixture
def page(tmp_path: Path) -> Callable[[Report], Path]:
    """The file of a report, written as a program would that knows no Unicode."""

    def write(report: Report) -> Path:
        path = tmp_path / "report.html"
        path.write_text(render("html", report, Screen()), encoding="ascii")
        return path

    return write
