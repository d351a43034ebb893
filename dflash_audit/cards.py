"""The cards that a server may run on, by their compute capability times ten.

Source: NVIDIA's table of CUDA GPUs and their compute capabilities.
"""

from collections.abc import Mapping
from typing import Final

CARDS: Final[Mapping[str, int]] = {
    "h200": 90,
    "h100": 90,
    "h20": 90,
    "b200": 100,
    "gb200": 100,
    "b300": 103,
    "rtx5090": 120,
    "rtx6000pro": 120,
    "l40s": 89,
    "l4": 89,
    "rtx4090": 89,
    "a100": 80,
    "a30": 80,
    "a10": 86,
    "rtx3090": 86,
    "t4": 75,
    "v100": 70,
}

DEFAULT_CARD: Final = "h200"
"""The card of a profile where none is named."""
