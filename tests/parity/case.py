"""A recorded case: a checkpoint's layout, and what the real engines did with it."""

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from materialize import materialize

from dflash_audit.auditing import Request, audit
from dflash_audit.cards import CARDS, DEFAULT_CARD
from dflash_audit.engine_run import Conditions
from dflash_audit.engines import ENGINES
from dflash_audit.formats.json_report import document
from dflash_audit.sources.checkpoint import Origin
from dflash_audit.sources.target_files import TargetFiles
from dflash_audit.target import Target

FIXTURES = Path(__file__).parents[2] / "fixtures"

Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One case folder; see `materialize` for what it holds."""

    folder: Path

    def _json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    @cached_property
    def records(self) -> dict[str, Record]:
        records: dict[str, Record] = self._json("expected.json")
        return {engine: record for engine, record in records.items() if engine in ENGINES}

    @cached_property
    def tensors(self) -> dict[str, tuple[str, list[int]]]:
        tensors: dict[str, tuple[str, list[int]]] = self._json("tensors.json")
        return tensors

    @property
    def conditions(self) -> Conditions:
        """What the audit takes of the server's options; the attention backend it only warns about."""
        given = self.options
        return Conditions(
            tp=int(given.get("--tp", 1)),
            capability=self.capability,
            quantization=given.get("--quantization"),
            target=self.target,
        )

    @cached_property
    def target(self) -> Target | None:
        """The target that the case was recorded with, where it is not one made to fit the draft."""
        if not (self.folder / "target.json").exists():
            return None
        return Target(TargetFiles(Origin("local", "target"), self._json("target.json"), None, None, 0))

    @property
    def options(self) -> dict[str, str]:
        """The server's options."""
        path = self.folder / "args.json"
        words = json.loads(path.read_text()) if path.exists() else []
        return dict(zip(words[::2], words[1::2], strict=True))

    @property
    def capability(self) -> int:
        """The compute capability of the card that the case was recorded on, times ten."""
        return CARDS[self.options.get("--gpu", DEFAULT_CARD)]

    @cached_property
    def files(self) -> list[list[str]]:
        """The names of the tensors in each weight file."""
        path = self.folder / "files.json"
        return [*json.loads(path.read_text()).values()] if path.exists() else [[*self.tensors]]

    @property
    def last_names(self) -> set[str]:
        """The tensors that stand last in a weight file, one of which is the last that an engine reads."""
        return {max(names) for names in self.files if names}

    @property
    def held_twice(self) -> set[str]:
        """The tensors that lie in more than one file."""
        names = [name for held in self.files for name in held]
        return {name for name in names if names.count(name) > 1} if len(self.files) > 1 else set()

    def report(
        self,
        scratch: Path,
        gating: frozenset[str] = frozenset(ENGINES),
        *,
        target: Path | None = None,
        **changed: Any,
    ) -> dict[str, Any]:
        """The JSON report of an audit of the case, every engine gating unless others are named.

        `target` is the folder of one, `changed` are conditions that take the place of the case's.
        """
        source = materialize(self.folder, scratch)
        conditions = replace(self.conditions, **changed)
        served_with = None if target is None else str(target)
        return document(audit(Request(str(source), gating, conditions, target=served_with)))


def recorded(*groups: str) -> list[Case]:
    """Every case with a record in the named folders of `fixtures/`."""
    folders = (path.parent for group in groups for path in (FIXTURES / group).rglob("expected.json"))
    return [Case(folder) for folder in sorted(folders)]
