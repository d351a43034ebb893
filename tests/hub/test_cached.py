"""An audit with HF_HUB_OFFLINE set: the cached snapshot, as the client itself wrote it."""

from pathlib import Path

import pytest
from hub.drafts import report, sharded, single
from hub.fake_hub import FakeHub
from huggingface_hub import hf_hub_download, snapshot_download

NAME = "org/draft"


@pytest.fixture
def offline(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> "Offline":
    return Offline(hub, monkeypatch)


class Offline:
    """Audits that may not reach the Hub, which then must see no request."""

    def __init__(self, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hub = hub
        self.monkeypatch = monkeypatch

    def report(self, source: str) -> dict[str, object]:
        self.monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        self.hub.log.clear()
        said = report(source)
        assert self.hub.log == []
        return said


def test_a_whole_snapshot(hub: FakeHub, offline: Offline, tmp_path: Path) -> None:
    commit = hub.repo(NAME, sharded(3, tmp_path)).refs["main"]
    snapshot_download(NAME)
    online, said = report(NAME), offline.report(NAME)
    assert {**said, "source": None} == {**online, "source": None}
    source = said["source"]
    assert isinstance(source, dict)
    assert (source["kind"], source["id"], source["commit"]) == ("hub", NAME, commit)
    assert source["bytes_read"] < source["bytes_total"] == online["source"]["bytes_total"]


def test_a_later_push_is_not_seen(hub: FakeHub, offline: Offline, tmp_path: Path) -> None:
    repo = hub.repo(NAME, single(tmp_path))
    first = repo.refs["main"]
    snapshot_download(NAME)
    repo.push({"config.json": b"{}"})
    for source in (NAME, f"{NAME}@{first}"):
        said = offline.report(source)
        assert said["error"] is None
        assert isinstance(said["source"], dict) and said["source"]["commit"] == first


def test_a_folder_of_a_snapshot(hub: FakeHub, offline: Offline, tmp_path: Path) -> None:
    hub.repo(NAME, {f"dflash/{name}": content for name, content in single(tmp_path).items()})
    snapshot_download(NAME)
    said = offline.report(f"{NAME}:dflash/")
    assert said["error"] is None
    assert said["findings"] == []
    assert offline.report(f"{NAME}:dspark/")["error"] == {
        "kind": "not-cached",
        "message": "org/draft:dspark: the folder is not in the cache, and HF_HUB_OFFLINE is set",
    }


def test_a_partial_snapshot_is_audited_and_said_to_be_partial(
    hub: FakeHub, offline: Offline, tmp_path: Path
) -> None:
    files = {**single(tmp_path), "hf_quant_config.json": b"{}", "README.md": b"", "onnx/config.json": b"{}"}
    hub.repo(NAME, files)
    snapshot_download(NAME, allow_patterns=["config.json", "*.safetensors"])
    said = offline.report(NAME)
    assert said["error"] is None
    assert isinstance(said["findings"], list)
    (finding,) = said["findings"]
    assert (finding["rule"], finding["severity"], finding["engine"]) == ("odd-layout", "warning", None)
    assert finding["message"] == "The cache holds only a part of the repo, without hf_quant_config.json."


def test_a_snapshot_without_what_an_audit_needs(hub: FakeHub, offline: Offline, tmp_path: Path) -> None:
    files = sharded(2, tmp_path)
    first, second = sorted(name for name in files if name.endswith(".safetensors"))
    hub.repo(NAME, files)
    snapshot_download(NAME, allow_patterns=["*.json", first])
    error = offline.report(NAME)["error"]
    assert isinstance(error, dict)
    assert error["kind"] == "not-cached"
    assert error["message"] == (
        "org/draft: model.safetensors.index.json names it, and it is not there in the cache,"
        f" and HF_HUB_OFFLINE is set: the cache holds only a part of the repo, without {second}"
    )


def test_a_single_cached_file(hub: FakeHub, offline: Offline, tmp_path: Path) -> None:
    hub.repo(NAME, single(tmp_path))
    hf_hub_download(NAME, "config.json")
    assert offline.report(NAME)["error"] == {
        "kind": "not-cached",
        "message": "org/draft: no .safetensors file in the cache, and HF_HUB_OFFLINE is set",
    }


def test_not_cached(hub: FakeHub, offline: Offline, tmp_path: Path) -> None:
    hub.repo(NAME, single(tmp_path))
    error = {"kind": "not-cached", "message": "org/draft: not in the cache, and HF_HUB_OFFLINE is set"}
    assert offline.report(NAME)["error"] == error
    offline.monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    snapshot_download(NAME)
    assert offline.report(f"{NAME}@other")["error"] == error
