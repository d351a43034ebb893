"""What differs between the versions of SGLang that the audit replays, as data."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from dflash_audit.engines.sglang.conversions import Config
from dflash_audit.engines.sglang.known_architectures import LACKING_0_5_19
from dflash_audit.quantization.config import CURRENT, Dialect

FUSED_SHARDS: Final[Mapping[str, tuple[str, ...]]] = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}


class Profile(NamedTuple):
    """One version of SGLang; what is not given is as in 0.5.23.

    `packed_modules_mapping` is the draft class's. With `checkpoint_prefixes` a
    draft whose own config.json carries a quantization_config is built under
    its checkpoint names, `fc` included. With `refuses_drops` the load refuses
    a tensor that a module of the draft has no parameter for.

    `lacks` are model classes of 0.5.23 that the version has not. `unread` are
    keys that it does not read, by the part of the config that they stand in
    ("" for its top). `activations` are what an MLP may compute. With
    `refuses_stray_domino` the load refuses a Domino projector that the config
    does not announce. With `kv_cache_scales` an attention gets the scales of a
    quantized KV cache. With `dspark_in_dflash_config` a DSpark draft's own keys
    may stand in `dflash_config`. With `older_transformers` its config classes are
    those of 5.12.1. `dialect` is what it makes of quantization configs.
    """

    name: str
    packed_modules_mapping: Mapping[str, tuple[str, ...]]
    checkpoint_prefixes: bool
    refuses_drops: bool
    lacks: frozenset[str] = frozenset()
    unread: Mapping[str, frozenset[str]] = MappingProxyType({})
    activations: tuple[str, ...] = ("silu", "swigluoai")
    refuses_stray_domino: bool = True
    kv_cache_scales: bool = True
    dspark_in_dflash_config: bool = True
    older_transformers: bool = False
    dialect: Dialect = CURRENT

    def as_read(self, config: Config) -> Config:
        """The config without what this version does not read."""
        read = config
        for part, keys in self.unread.items():
            holder = config.get(part) if part else read
            if isinstance(holder, Mapping) and not keys.isdisjoint(holder):
                left = {k: value for k, value in holder.items() if k not in keys or _odd(value)}
                read = {**read, part: left} if part else left
        return read


def _odd(value: Any) -> bool:
    """What the engine trips over although it reads nothing of it: its tables take no such key."""
    return isinstance(value, list | Mapping)


RELEASE_0_5_19: Final = Profile(
    name="sglang-0.5.19",
    packed_modules_mapping={},
    checkpoint_prefixes=False,
    refuses_drops=False,
    lacks=LACKING_0_5_19,
    unread={
        "": frozenset({"use_gemma_norm", "projector_type", "partial_rotary_factor"}),
        "dflash_config": frozenset({"attention_sink_bias", "attention_value_scale", "projector_type"}),
        "rope_parameters": frozenset({"rope_dim"}),
        "rope_scaling": frozenset({"rope_dim"}),
    },
    activations=("silu",),
    refuses_stray_domino=False,
    kv_cache_scales=False,
    dspark_in_dflash_config=False,
    older_transformers=True,
    dialect=Dialect(
        more=frozenset({"gptq"}),
        fewer=frozenset({"minimax_m3_nvfp4"}),
        weight_only_floats=False,
        flat_fp4_lists=("ignore",),
        own_blocks=False,
        needs_section=True,
    ),
)
"""Source: SGLang 0.5.19 `srt/models/dflash.py` and `dspark.py`, `srt/speculative/dflash_utils.py`,
`dspark_components/dspark_config.py`, `srt/configs/model_config.py`, `srt/layers/quantization/__init__.py`,
`modelopt_quant.py` and `compressed_tensors/compressed_tensors.py`; transformers 5.12.1.

Norms are plain whatever the config says, Domino's projector and MiMo's attention are not built, the rotary
embedding is as wide as a head, and an attention is built without the quantization config."""


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
