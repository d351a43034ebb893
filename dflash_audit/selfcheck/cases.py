"""The drafts of a self-check: checkpoints, and recorded cases that hold only a checkpoint's layout."""

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from dflash_audit.engine_run import Conditions
from dflash_audit.engines.installed.folder import write_zeros
from dflash_audit.sources.checkpoint import CONFIG, Checkpoint, Tensor
from dflash_audit.sources.disk import read_path

LAYOUT: Final = "tensors.json"
"""A case's tensors, name -> [dtype, shape], in place of a weight file."""

FILES: Final = "files.json"
"""Which weight file holds which of the tensors, where there are several: file name -> names."""

OPTIONS: Final = "args.json"
"""The server's options for a case, as a list of words."""

OF_THE_CASE: Final = frozenset((LAYOUT, FILES, OPTIONS, "expected.json", "rule.json", "target.json"))


@dataclass(frozen=True, slots=True)
class Case:
    """One draft under one server's options; `name` is how the report calls it."""

    name: str
    folder: Path

    def conditions(self, capability: int) -> Conditions:
        path = self.folder / OPTIONS
        words = json.loads(path.read_text()) if path.exists() else []
        given = dict(zip(words[::2], words[1::2], strict=True))
        return Conditions(
            tp=int(given.get("--tp", 1)),
            capability=capability,
            quantization=given.get("--quantization"),
            attention_backend=given.get("--speculative-draft-attention-backend"),
        )

    @contextmanager
    def checkpoint(self) -> Iterator[Checkpoint]:
        """The draft as a checkpoint on disk; raises `Unreadable`."""
        if not (self.folder / LAYOUT).exists():
            yield read_path(self.folder)
            return
        with TemporaryDirectory(prefix="dflash-audit-") as scratch:
            folder = Path(scratch, self.folder.name)
            folder.mkdir()
            for path in (*self.folder.glob("*.json"), *self.folder.glob("*.pt")):
                if path.name not in OF_THE_CASE:
                    shutil.copy(path, folder)
            layout = json.loads((self.folder / LAYOUT).read_text())
            for file, names in self._files(layout).items():
                specs = ((name, *layout[name]) for name in names)
                write_zeros(
                    folder / file, [Tensor(n, dtype, tuple(shape), file) for n, dtype, shape in specs]
                )
            yield read_path(folder)

    def _files(self, layout: Iterable[str]) -> dict[str, list[str]]:
        path = self.folder / FILES
        files: dict[str, list[str]] = json.loads(path.read_text()) if path.exists() else {}
        return files or {"model.safetensors": [*layout]}


def find_cases(folders: Iterable[Path]) -> list[Case]:
    """Every draft in the folders and below them, in the order of their names."""
    found: dict[Path, Case] = {}
    for folder in folders:
        for config in sorted(folder.rglob(CONFIG)):
            inside = config.parent
            if (inside / LAYOUT).exists() or any(inside.glob("*.safetensors")):
                name = f"{folder.name}/{inside.relative_to(folder)}" if inside != folder else folder.name
                found.setdefault(inside.resolve(), Case(name, inside))
    return list(found.values())
