"""The real huggingface_hub client, pointed at a Hub of the test's own and at an empty cache."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hub.fake_hub import FakeHub, serve

from dflash_audit.sources.traffic import Traffic


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with serve(FakeHub()) as served:
        point_client_at(served.url, tmp_path / "cache", monkeypatch)
        yield served


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between attempts in seconds, which are not waited for: the clock goes by them."""
    waits: list[float] = []
    monkeypatch.setattr("dflash_audit.sources.traffic.sleep", waits.append)
    monkeypatch.setattr("dflash_audit.sources.traffic.monotonic", lambda: 1e6 + sum(waits))
    monkeypatch.setattr("dflash_audit.sources.hub.TRAFFIC", Traffic())
    return waits


def point_client_at(url: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set what huggingface_hub reads from the environment once, when it is imported."""
    constants = "huggingface_hub.constants"
    monkeypatch.setattr(f"{constants}.ENDPOINT", url)
    template = "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(f"{constants}.HUGGINGFACE_CO_URL_TEMPLATE", url + template)
    monkeypatch.setattr(f"{constants}.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(f"{constants}.HF_TOKEN_PATH", str(cache / "token"))
    monkeypatch.setattr(f"{constants}.HF_HUB_DISABLE_TELEMETRY", True)
    monkeypatch.setattr(f"{constants}.HF_HUB_OFFLINE", False)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE"):
        monkeypatch.delenv(name, raising=False)
