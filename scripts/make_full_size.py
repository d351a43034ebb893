"""Make a full-size DFlash2 draft, dense and quantized, for measuring the warm-up.

    python scripts/make_full_size.py TARGET [DEVICE]

writes `TARGET/bf16`, random numbers in the layout of `fixtures/published/qwen3.8-27b-dflash2`
(81 tensors, 3.85 GB), and `TARGET/w8a16`, the same with the linears rounded to
8-bit groups as `fixtures/seed-w8a16` declares them. DEVICE (cpu) does the arithmetic.
Needs the extra `warmup`.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import torch
from compressed_tensors.compressors import pack_to_int32
from safetensors.torch import save_file

FIXTURES = Path(__file__).parent.parent / "fixtures"
LAYOUT = FIXTURES / "published" / "qwen3.8-27b-dflash2"
RECIPE = FIXTURES / "seed-w8a16" / "config.json"


def values(name: str, shape: list[int], generator: torch.Generator) -> Any:
    """Numbers near those of a trained draft: norms near one, the rest small."""
    noise = torch.randn(shape, generator=generator, device=generator.device) * 0.02
    if "norm" in name:
        noise += 1
    elif name.endswith("base_kernel"):
        noise[:, 0] += 1  # the tap on the token itself passes it on
    return noise.to(torch.bfloat16)


def quantized(name: str, weight: Any, group: int) -> dict[str, Any]:
    """The tensors of a linear in symmetric 8-bit groups, rounded to the nearest."""
    module, (rows, columns) = name.removesuffix(".weight"), weight.shape
    grouped = weight.float().view(rows, columns // group, group)
    scale = (grouped.abs().amax(-1) / 127.5).to(torch.bfloat16)
    codes = (grouped / scale.float().unsqueeze(-1)).round().clamp(-128, 127).to(torch.int8)
    return {
        f"{module}.weight_packed": pack_to_int32(codes.view(rows, columns), num_bits=8),
        f"{module}.weight_scale": scale,
        f"{module}.weight_shape": torch.tensor([rows, columns]),
    }


def main() -> None:
    target, device = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "cpu"
    config = json.loads((LAYOUT / "config.json").read_text())
    recipe = json.loads(RECIPE.read_text())["quantization_config"]
    group = recipe["config_groups"]["W8A16"]["weights"]["group_size"]
    # Its regexes are anchored at the start, as an engine matches them.
    dense = [re.compile(entry.removeprefix("re:")) for entry in recipe["ignore"]]
    generator = torch.Generator(device).manual_seed(0)
    whole: dict[str, Any] = {}
    small: dict[str, Any] = {}
    for name, (_, shape) in json.loads((LAYOUT / "tensors.json").read_text()).items():
        whole[name] = values(name, shape, generator).cpu()
        module = name.removesuffix(".weight")
        left = len(shape) != 2 or module == name or any(entry.match(module) for entry in dense)
        made = {name: whole[name]} if left else quantized(name, whole[name].to(device), group)
        small |= {key: tensor.cpu().contiguous() for key, tensor in made.items()}
    write(target / "bf16", config, whole)
    write(target / "w8a16", config | {"quantization_config": recipe}, small)


def write(folder: Path, config: dict[str, Any], tensors: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
