"""Checkpoints made to break the audit: it ends soon, in little memory, with a clear line or a finding.

Whole processes, each with a limit on its memory and on its time.
"""

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from materialize import encoded_header, materialize, write_zeros
from parity.case import FIXTURES

CASE = FIXTURES / "cases" / "ct-dflash2-w8a16_seed"
MEMORY = 700 * 2**20
SECONDS = 30
"""Of the CPU: how long that takes is a matter of what else runs."""


def audit(source: Path, *options: str) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, resource.RLIM_INFINITY))

    command = [sys.executable, "-m", "dflash_audit", str(source), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, preexec_fn=limit, check=False)
    assert done.returncode >= 0, "ended by a signal: SIGXCPU for too long"
    assert "Traceback" not in done.stderr
    for line in (done.stderr + done.stdout).split("\n"):
        assert line.isprintable()
    return done


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    return materialize(CASE, tmp_path / "draft")


def edit(draft: Path, change: Callable[[dict[str, Any]], object]) -> None:
    config = json.loads((draft / "config.json").read_text())
    change(config)
    (draft / "config.json").write_text(json.dumps(config))


def unreadable(draft: Path, reason: str) -> None:
    done = audit(draft)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("dflash-audit: ")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 100_000_001])
def test_header_that_claims_more_than_there_is(draft: Path, length: int) -> None:
    (draft / "model.safetensors").write_bytes(length.to_bytes(8, "little") + b"{}")
    unreadable(draft, f"a header of {length} bytes")


def test_header_of_a_sparse_gigabyte(draft: Path) -> None:
    with open(draft / "model.safetensors", "wb") as file:
        file.write((99_999_999).to_bytes(8, "little"))
        file.truncate(10**9)
    unreadable(draft, "not JSON")


def test_index_of_a_sparse_gigabyte(draft: Path) -> None:
    with open(draft / "model.safetensors.index.json", "wb") as file:
        file.truncate(10**9)
    unreadable(draft, "1000000000 bytes of JSON")


def test_shapes_whose_product_overflows(draft: Path) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [2**40, 2**40, 0], "data_offsets": [0, 0]}}).encode()
    (draft / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    unreadable(draft, "overflows")


def test_deep_nesting(draft: Path) -> None:
    for depth in (101, 900, 100_000):
        (draft / "config.json").write_text('{"a":' + "[" * depth + "]" * depth + "}")
        unreadable(draft, "nested too deep")


def test_many_tensors(draft: Path) -> None:
    write_zeros(draft / "model.safetensors", {f"layers.{n % 9}.x{n}": ("F4", [2]) for n in range(20_000)})
    assert audit(draft, "--json").returncode == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("num_hidden_layers", 10**300, id="layers"),
        pytest.param("hidden_size", 10**4000, id="digits"),
        pytest.param("hidden_size", 2**62, id="product"),
        pytest.param("num_attention_heads", 2**63, id="heads"),
        pytest.param("rms_norm_eps", float("nan"), id="nan"),
        pytest.param("rope_theta", float("inf"), id="inf"),
        pytest.param("hidden_act", "\x1b[31m" * 10_000, id="escapes"),
        pytest.param("model_type", "\ud800", id="surrogate"),
        pytest.param("architectures", ["::error::\n##[error]<script>|"], id="markup"),
    ],
)
def test_values_that_break_the_build(draft: Path, key: str, value: Any) -> None:
    edit(draft, lambda config: config.update({key: value, "layer_types": None}))
    done = audit(draft)
    assert done.returncode in (0, 1, 3)


@pytest.mark.parametrize("key", ["head_dim", "hidden_size", "num_attention_heads", "rms_norm_eps"])
def test_a_number_of_very_many_digits_is_told_in_short(draft: Path, key: str) -> None:
    edit(draft, lambda config: config.update({key: int("7" * 400)}))
    report = json.loads(audit(draft, "--json", "--engine", "all").stdout)
    told = [f["message"] for f in report["findings"]] + [e["refusal"]["reason"] for e in report["engines"]]
    assert any("777777777777... (400 digits)" in text for text in told)
    assert not any("7" * 13 in text for text in told)
    config = [f for f in report["findings"] if f["rule"] == "refused-config"]
    assert all(key in f["message"] and f"Mend {key} in" in f["hint"] for f in config)


def test_a_billion_layers_are_refused(draft: Path) -> None:
    edit(draft, lambda config: config.update({"num_hidden_layers": 10**9, "layer_types": None}))
    done = audit(draft, "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert {engine["verdict"] for engine in report["engines"]} == {"fail"}
    assert "refused-config" in {finding["rule"] for finding in report["findings"]}


@pytest.mark.parametrize("case", ["dense-lilicorr", "ct-lilicorr-w8a16_backbone"])
def test_a_head_of_a_billion_layers_is_not_replayed(case: str, tmp_path: Path) -> None:
    draft = materialize(FIXTURES / "cases" / case, tmp_path / "draft")
    edit(draft, lambda config: config["dflash_config"].update({"lilicorr_num_layers": 10**9}))
    report = json.loads(audit(draft, "--json").stdout)
    knows = [engine for engine in report["engines"] if engine["name"] != "sglang-0.5.19"]
    assert {engine["verdict"] for engine in knows} == {"skipped"}


def test_labels_without_number(draft: Path) -> None:
    edit(draft, lambda config: config.update({"num_labels": 10**9}))
    report = json.loads(audit(draft, "--json").stdout)
    assert {engine["verdict"] for engine in report["engines"]} == {"skipped"}


@pytest.mark.parametrize("entry", ["model.layers.{}.x", r"re:.*\.{}\.x", "re:(a+)+{}$", "re:.*.*.*.*.*{}"])
def test_very_many_entries(draft: Path, entry: str) -> None:
    def many(number: int) -> Callable[[dict[str, Any]], object]:
        entries = [entry.format(n) for n in range(number)]
        return lambda config: config["quantization_config"].update({"ignore": entries})

    edit(draft, many(300))
    assert audit(draft).returncode in (0, 1)
    edit(draft, many(30_000))
    report = json.loads(audit(draft, "--json").stdout)
    assert {engine["verdict"] for engine in report["engines"]} == {"skipped"}


def test_a_key_given_twice_counts_once_as_python_has_it(draft: Path) -> None:
    text = (draft / "config.json").read_text()
    (draft / "config.json").write_text('{"num_hidden_layers": 1000000000,' + text.lstrip()[1:])
    assert audit(draft).returncode == audit(materialize(CASE, draft.parent / "plain")).returncode


class TestLinks:
    """A checkpoint out of a repository shows nothing else of the disk."""

    def test_the_cache_of_the_hub(self, draft: Path) -> None:
        snapshot = draft.parent / "models--org--draft" / "snapshots" / ("0" * 40)
        blobs = snapshot.parents[1] / "blobs"
        snapshot.mkdir(parents=True)
        blobs.mkdir()
        for number, path in enumerate(sorted(draft.iterdir())):
            path.rename(blobs / f"{number:040}")
            (snapshot / path.name).symlink_to(f"../../blobs/{number:040}")
        assert audit(snapshot).returncode == audit(materialize(CASE, draft.parent / "plain")).returncode

    def test_another_checkpoint(self, draft: Path, tmp_path: Path) -> None:
        linked = tmp_path / "linked"
        linked.mkdir()
        for path in draft.iterdir():
            (linked / path.name).symlink_to(path)
        assert audit(linked).returncode == audit(draft).returncode

    @pytest.mark.parametrize("name", ["config.json", "model.safetensors", "model.safetensors.index.json"])
    def test_anything_else(self, draft: Path, tmp_path: Path, name: str) -> None:
        secret = tmp_path / "secrets" / "token.json"
        secret.parent.mkdir()
        secret.write_text('{"auths": "hunter2"}')
        (draft / name).unlink(missing_ok=True)
        (draft / name).symlink_to(secret)
        unreadable(draft, f"{name}: a link out of its folder")
        assert "hunter2" not in audit(draft, "--json").stdout

    @pytest.mark.parametrize(
        "file", ["/etc/passwd", "../secret.safetensors", "sub/../../secret.safetensors", "a\0b"]
    )
    def test_an_index(self, draft: Path, file: str) -> None:
        header, _ = encoded_header({"a": ("F32", [])})
        (draft.parent / "secret.safetensors").write_bytes(header + bytes(4))
        weight_map = {"a": file, "fc.weight": "model.safetensors"}
        (draft / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
        unreadable(draft, "names files outside its folder")
