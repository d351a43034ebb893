"""Record what z-lab's own `dflash` package computes: writes fixtures/reference/zlab.safetensors.

    python scripts/record_zlab.py fixtures/reference/zlab.safetensors

Run it with the Python of an environment that holds dflash==0.1.0, transformers
and torch. The drafts, their weights and their inputs are those of
tests/reference/zlab_cases.py.
"""

import argparse
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import torch  # noqa: E402
from reference.zlab import build, run  # noqa: E402
from reference.zlab_cases import CASES, case  # noqa: E402
from safetensors.torch import save_file  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    target = parser.parse_args().file
    recorded: dict[str, torch.Tensor] = {}
    for name in CASES:
        config, draft, inputs = case(name)
        hidden, tokens = run(build(config, draft), draft, inputs)
        recorded |= {f"{name}/hidden": hidden, f"{name}/tokens": tokens.int()}
    target.parent.mkdir(parents=True, exist_ok=True)
    versions = {package: version(package) for package in ("dflash", "torch", "transformers")}
    save_file(recorded, str(target), metadata=versions)


if __name__ == "__main__":
    main()
