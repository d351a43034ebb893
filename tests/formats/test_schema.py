"""The published schema: it holds for every report, and not for one that has lost or misspelt a key."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from formats.reports import ALL, SEED, WARMUPS, audited, hostile, unreadable, warmed, written
from report_schema import valid, validator
from test_cli import run

from dflash_audit.formats.json_report import document, schema


def test_the_command_prints_it() -> None:
    done = run("schema")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads(schema())


@pytest.mark.parametrize("folder", WARMUPS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_recorded_warm_ups(folder: Path, tmp_path: Path) -> None:
    said = valid(document(warmed(folder, tmp_path)))
    assert said["warmup"]


def test_what_could_not_be_read() -> None:
    assert valid(document(unreadable()))["error"]["kind"] == "no-such-source"


def test_hostile_names() -> None:
    valid(json.loads(written("json", hostile())))


def objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each object of a document, one of each list's."""
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            yield from objects(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield from objects(next((each for each in value if isinstance(each, dict)), None), (*path, 0))


def reached(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def full() -> list[dict[str, Any]]:
    """Documents in which every object of the contract is there at least once."""
    found = [document(audited()), document(unreadable())]
    for engine in found[0]["engines"]:
        engine |= {"parameters": engine["parameters"][:2], "tensors": engine["tensors"][:2]}
    died = json.loads((WARMUPS[0] / "warmup.json").read_text())
    whole = copy.deepcopy(found[0])
    death = {"kind": "assert", "stage": "fc", "detail": "a < b", "by_draft": True}
    whole["warmup"] = [
        {
            **died,
            "verdict": "fail",
            "death": death,
            "provoked": death,
            "stages": [{"name": "fc", "seconds": 0.5, "finite": False, "nonfinite": 1.0, "largest": None}],
            "sources": [{"module": "fc", "stage": "fc", "unfilled": ["fc.weight"], "tensors": []}],
            "out_of_range": [{"table": "embed", "id": -1, "rows": 8}],
            "fidelity": {
                "against": "org/original",
                "drifts": [
                    {"matrix": "fc", "numbers": "int", "bits": 4, "width": 128, "error": 0.1}
                    | {"decibels": 20.0, "gain": 1.0, "group": 0.9, "shift": 0.01}
                ],
                "cosines": [{"stage": "norm", "mean": 0.99, "least": 0.98, "rounding": 0.99}],
                "first": 1.0,
                "common": 0.9,
                "common_rounding": None,
                "rescaled": ["layers.0"],
            },
        }
    ]
    whole["skips"] = [{"rule": "warmup-died", "reason": "it did", "failing": False}]
    engine = next(engine for engine in whole["engines"] if engine["verdict"] == "fail")
    engine["refusal"] = {"stage": "load", "reason": "it would", "tensor": None}
    engine["resized"] = [{"parameter": "fc.weight", "holds": 2, "took": 1}]
    engine["tensors"].insert(0, {**engine["tensors"][0], "outcome": "loaded", "targets": ["fc.weight"]})
    engine["tensors"][0]["cast"] = {"to": "float8_e4m3fn", "lossy": True}
    whole["engines"] = [engine]
    return [*found, whole]


def test_a_key_that_is_missing_or_one_too_many_is_seen() -> None:
    tried = set()
    for number, said in enumerate(full()):
        valid(said)
        for path in objects(said):
            for key in reached(said, path):
                broken = copy.deepcopy(said)
                del reached(broken, path)[key]
                assert not validator().is_valid(broken), (path, key)
                reached(broken, path)[f"{key}s"] = reached(said, path)[key]
                assert not validator().is_valid(broken), (path, key)
                tried.add((number, path, key))
    assert {key for _, _, key in tried} >= {"to", "took", "by_draft", "rows", "unfilled", "kind", "hint"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema_version",), 2),
        (("source", "commit"), "main"),
        (("engines", 0, "verdict"), "ok"),
        (("engines", 0, "parameters", 0, "missing"), ["all", "q"]),
        (("engines", 0, "parameters", 0, "dtype"), "BF16"),
        (("engines", 0, "tensors", 0, "dtype"), "bfloat16"),
        (("engines", 0, "tensors", 0, "shape"), [1.5]),
        (("findings", 0, "severity"), "fatal"),
        (("findings", 0, "rule"), "Dropped Tensor"),
        (("findings", 0, "count"), 0),
        (("findings", 0, "message"), ""),
        (("summary", "exit_code"), 3),
        (("summary", "errors"), None),
        (("error",), {"kind": "network", "message": "down"}),
        (("engines",), []),
    ],
)
def test_a_wrong_value_is_seen(path: tuple[Any, ...], value: object) -> None:
    said = valid(document(audited(gating=ALL)))
    reached(said, path[:-1])[path[-1]] = value
    assert not validator().is_valid(said)


def test_a_line_of_jsonl_is_the_report() -> None:
    done = run(str(SEED), "--format", "jsonl")
    (line,) = done.stdout.splitlines()
    assert valid(json.loads(line)) == json.loads(run(str(SEED), "--json").stdout)
