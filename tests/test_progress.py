"""The sign of life: late, on a terminal only, and gone at the end."""

import io
import sys
import threading

import pytest

from dflash_audit.sources.progress import SHOWN, waiting


class Screen(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal
        self.written = threading.Event()

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


def shown(terminal: bool, slow: bool, monkeypatch: pytest.MonkeyPatch, wanted: bool = True) -> str:
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("dflash_audit.sources.progress.PATIENCE", 0.0 if slow else 60.0)
    token = SHOWN.set(wanted)
    with waiting("Reading [org]/name ..."):
        if slow and terminal and wanted:
            assert screen.written.wait(30)
    SHOWN.reset(token)
    return screen.getvalue()


def test_what_is_slow_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Reading [org]/name ..." in shown(True, True, monkeypatch)


@pytest.mark.parametrize(("terminal", "slow"), [(True, False), (False, True), (False, False)])
def test_nothing_else_is(terminal: bool, slow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(terminal, slow, monkeypatch) == ""


def test_a_program_that_did_not_ask_for_it_has_its_terminal_to_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert shown(True, True, monkeypatch, wanted=False) == ""
    seen: list[bool] = []
    token = SHOWN.set(True)
    worker = threading.Thread(target=lambda: seen.append(SHOWN.get()))
    worker.start()
    worker.join()
    SHOWN.reset(token)
    assert seen == [False]
