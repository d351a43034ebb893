"""The library on a repo: nothing is printed, on a terminal neither, and a loop over many goes on."""

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hub.drafts import sharded, single
from hub.fake_hub import FakeHub

from dflash_audit import audit, to_json


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_many_repos_at_once(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repo("org/one", single(tmp_path))
    hub.repo("org/two", sharded(3, tmp_path))
    names = ["org/one", "org/none", "org/two", "org/one@no-such"] * 4
    alone = [to_json(audit(name)) for name in names]
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr("dflash_audit.sources.progress.PATIENCE", 0.0)
    with ThreadPoolExecutor(8) as pool:
        together = [to_json(report) for report in pool.map(audit, names)]
    assert together == alone
    assert [report["summary"]["exit_code"] for report in alone[:4]] == [0, 3, 0, 3]
    assert alone[0]["source"]["commit"] is not None
    assert terminal.getvalue() == ""
