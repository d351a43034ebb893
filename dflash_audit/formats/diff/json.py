"""A comparison of two checkpoints as one JSON object, version 1: keys are only ever added."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from dflash_audit import __version__
from dflash_audit.difference import Change, Difference, EngineDifference
from dflash_audit.formats.json_text import json_text
from dflash_audit.report import Report

SCHEMA_VERSION: Final = 1


def render(difference: Difference) -> str:
    """One JSON object, on one line."""
    return json_text(document(difference))


def schema() -> str:
    """The JSON Schema of such an object, as the package carries it."""
    return Path(__file__).with_suffix(".schema.json").read_text(encoding="utf-8").rstrip()


def document(difference: Difference) -> dict[str, Any]:
    """The object; `json.schema.json` beside this file says what its keys are."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "dflash-audit", "version": __version__},
        "a": _side(difference.a),
        "b": _side(difference.b),
        "same": difference.same,
        "tensors": _changes(difference.tensors),
        "engines": [_engine(engine) for engine in difference.engines],
        "exit_code": difference.exit_code,
    }


def _side(report: Report) -> dict[str, Any]:
    origin = report.origin
    return {
        "kind": origin.kind,
        "id": origin.id,
        "revision": origin.revision,
        "commit": origin.commit,
        "error": report.error and {"kind": report.error.kind, "message": report.error.message},
    }


def _engine(engine: EngineDifference) -> dict[str, Any]:
    return {
        "name": engine.name,
        "same": engine.same,
        "a": dict(engine.a),
        "b": dict(engine.b),
        "modules": _changes(engine.modules),
        "parameters": _changes(engine.parameters),
        "missing": _changes(engine.missing),
        "tensors": _changes(engine.tensors),
        "resized": _changes(engine.resized),
    }


def _changes(changes: Iterable[Change]) -> list[dict[str, Any]]:
    return [{"name": change.name, "a": change.a, "b": change.b} for change in changes]
