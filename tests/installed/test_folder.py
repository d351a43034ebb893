"""A checkpoint as a folder that the engine can open."""

import json
from dataclasses import replace
from pathlib import Path

from materialize import materialize

from dflash_audit.engines.installed.folder import as_folder
from dflash_audit.sources.checkpoint import Origin
from dflash_audit.sources.disk import read_path

FIXTURES = Path(__file__).parents[2] / "fixtures"


def test_a_folder_is_itself(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "dense-dflash1", tmp_path / "draft")
    with as_folder(read_path(source)) as folder:
        assert folder == str(source)


def test_a_single_file_stands_alone(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "dense-dflash1", tmp_path / "draft")
    (source / "other.safetensors").write_bytes((source / "model.safetensors").read_bytes())
    (source / "model.safetensors.index.json").write_text("{}")
    with as_folder(read_path(source / "model.safetensors")) as folder:
        assert Path(folder).name == "draft"
        assert sorted(path.name for path in Path(folder).iterdir()) == ["config.json", "model.safetensors"]
    assert not Path(folder).exists()


def test_a_repo_is_laid_out_from_its_headers(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "modelopt-nvfp4-hfquant", tmp_path / "draft")
    there = read_path(source)
    repo = replace(there, origin=Origin("hub", "org/name", None, "0" * 40))
    with as_folder(repo) as folder:
        again = read_path(folder)
        assert Path(folder).name == "name"
        assert again.config == there.config
        assert again.tensors == there.tensors
        file = "hf_quant_config.json"
        assert json.loads(Path(folder, file).read_text()) == json.loads((source / file).read_text())
