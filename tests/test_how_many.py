"""Numbers in sentences."""

from pathlib import Path

import pytest
from materialize import write_zeros
from test_cli import run

from dflash_audit.how_many import how_many


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 layers"), (1, "1 layer"), (2, "2 layers"), (1024, "1,024 layers")]
)
def test_how_many(number: int, said: str) -> None:
    assert how_many(number, "layer") == said


def test_one_tensor_in_one_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    write_zeros(tmp_path / "model.safetensors", {"fc.weight": ("BF16", [2, 2])})
    assert ", 1 tensor in 1 file (" in run(str(tmp_path)).stdout
