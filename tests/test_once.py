"""What is worked out of an engine's replay once, and what of it a copy takes along."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from materialize import materialize
from parity.case import FIXTURES

from dflash_audit.drops import excuses
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import ENGINES, engine
from dflash_audit.once import once
from dflash_audit.sources.disk import read_path

COPIES: dict[str, Callable[[EngineRun], EngineRun]] = {
    "copied": copy.copy,
    "copied with all in it": copy.deepcopy,
    "pickled": lambda run: pickle.loads(pickle.dumps(run)),
}


@pytest.fixture(params=ENGINES)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> EngineRun:
    draft = materialize(FIXTURES / "cases" / "dense-dflash2", tmp_path / "draft")
    return engine(request.param).replay(read_path(str(draft)), Conditions())


def test_it_is_asked_once_of_each() -> None:
    asked: list[str] = []

    @once
    def length(run: EngineRun) -> int:
        asked.append(run.engine)
        return len(run.engine)

    one, other = EngineRun("one"), EngineRun("other")
    assert [length(one), length(other), length(one)] == [3, 5, 3]
    assert asked == ["one", "other"]


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_is_the_same_and_remembers_nothing(
    run: EngineRun, copied: Callable[[EngineRun], EngineRun]
) -> None:
    excuses(run)
    twin = copied(run)
    assert run.remembered and not twin.remembered
    assert (twin, twin.plan is None) == (run, False)
    excuses(twin)
    assert twin.remembered is not run.remembered
