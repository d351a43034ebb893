"""Where a finding is, for programs that point at files: the file, and what in it is meant."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from dflash_audit.finding import Finding
from dflash_audit.report import Report
from dflash_audit.sources.checkpoint import CONFIG, Tensor
from dflash_audit.sources.weight_files import WEIGHTS

Kind = Literal["tensor", "parameter", "module", "file", "entry"]

MODELOPT: Final = "hf_quant_config.json"
ROOTS: Final = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Where GitHub and GitLab say that the checkout is, to which they take paths as relative; else it is here."""

OF_QUANTIZATION: Final = frozenset(
    (
        "refused-quantization",
        "dead-ignore-entry",
        "wrong-ignore-entry",
        "unread-ignore-list",
        "endless-pattern",
    )
)
"""Rules whose subjects stand in the quantization config, wherever that is."""


@dataclass(frozen=True, slots=True)
class Place:
    """`file` as the source's folder has it; what is meant in it, with what kind of thing that is.

    An `entry` is a key of the config, an entry of a list in it, or an option of the server.
    """

    file: str
    names: tuple[tuple[str, Kind], ...]


class Places:
    """The places of a report's findings."""

    def __init__(self, report: Report) -> None:
        self._report = report
        named = (os.environ.get(variable, "") for variable in ROOTS)
        self._root = os.path.realpath(next(filter(os.path.isdir, named), "."))

    @property
    def local(self) -> bool:
        return self._report.origin.kind == "local"

    @cached_property
    def folder(self) -> str:
        """The source's folder: a path, or a repo and a folder in it."""
        origin = self._report.origin
        if not self.local:
            return origin.id.replace(":", "/")
        return (os.path.dirname(origin.id) or ".") if origin.id.endswith(WEIGHTS) else origin.id

    @cached_property
    def name(self) -> str:
        """The folder under a name that is the same in every checkout: below the root, or its last part."""
        if not self.local:
            return self.folder
        folder = os.path.realpath(self.folder)
        here = os.path.relpath(folder, self._root)
        inside = here != os.pardir and not here.startswith(os.pardir + os.sep)
        return here.replace(os.sep, "/") if inside else os.path.basename(folder)

    @cached_property
    def below_root(self) -> bool:
        """Whether `name` leads from the root to the folder."""
        folder = os.path.realpath(self.folder)
        return self.local and os.path.realpath(os.path.join(self._root, self.name)) == folder

    def path(self, file: str) -> str:
        """A file of the source as `name` has it, with slashes."""
        return file if self.name == "." else f"{self.name}/{file}"

    def of(self, finding: Finding) -> Place:
        """The file of the first subject that has one of its own, config.json where none has."""
        subjects = finding.subjects or (finding.subject,)
        names = tuple((name, self._kind(finding.engine, name)) for name in subjects)
        return Place(next(self._files(names), self._settings(finding)), names)

    def _files(self, names: tuple[tuple[str, Kind], ...]) -> Iterator[str]:
        for name, kind in names:
            if kind == "tensor":
                yield self._tensors[name].file
            elif kind == "file":
                yield name

    def _settings(self, finding: Finding) -> str:
        checkpoint = self._report.checkpoint
        if checkpoint is None or finding.rule not in OF_QUANTIZATION or MODELOPT not in checkpoint.json_files:
            return CONFIG
        declared = checkpoint.config.keys() & {"quantization_config", "compression_config"}
        return CONFIG if declared else MODELOPT

    def _kind(self, engine: str | None, name: str) -> Kind:
        if name in self._tensors:
            return "tensor"
        if name in self._files_there:
            return "file"
        trees = [run.tree for run in self._report.runs if run.tree and engine in (None, run.engine)]
        if any(name in tree.modules for tree in trees):
            return "module"
        head, _, last = name.rpartition(".")
        modules = [tree.modules[head] for tree in trees if head in tree.modules]
        named = {parameter.name for module in modules for parameter in module.parameters}
        return "parameter" if last.partition("[")[0] in named else "entry"

    @cached_property
    def _tensors(self) -> dict[str, Tensor]:
        read = self._report.checkpoint
        return {tensor.name: tensor for tensor in read.tensors} if read else {}

    @cached_property
    def _files_there(self) -> frozenset[str]:
        read = self._report.checkpoint
        return frozenset(name for name in read.names if not name.endswith("/")) if read else frozenset()
