"""What differs between the versions of SGLang that the audit replays, as data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

FUSED_SHARDS: Final[Mapping[str, tuple[str, ...]]] = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}


@dataclass(frozen=True, slots=True)
class Profile:
    """One version of SGLang.

    `packed_modules_mapping` is the draft class's. With `checkpoint_prefixes` a
    draft whose own config.json carries a quantization_config is built under
    its checkpoint names, `fc` included. With `refuses_drops` the load refuses
    a tensor that a module of the draft has no parameter for.
    """

    name: str
    packed_modules_mapping: Mapping[str, tuple[str, ...]]
    checkpoint_prefixes: bool
    refuses_drops: bool


RELEASE_0_5_23: Final = Profile(
    name="sglang-0.5.23",
    packed_modules_mapping={},
    checkpoint_prefixes=False,
    refuses_drops=False,
)
"""Source: SGLang 0.5.23 `srt/models/dflash.py`."""

NEXT: Final = Profile(
    name="sglang-next",
    packed_modules_mapping=FUSED_SHARDS,
    checkpoint_prefixes=True,
    refuses_drops=True,
)
"""Source: the change "Build DFlash draft layers under their checkpoint names and
refuse tensors the draft would drop", on top of SGLang 0.5.23."""
