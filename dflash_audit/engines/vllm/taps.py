"""The layers of the target that a draft's config asks for, by the key that counts.

Source: vLLM 0.33.0 `v1/worker/gpu/spec_decode/eagle/eagle3_utils.py`, `get_eagle3_aux_layers_from_config`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from dflash_audit.engines.vllm.fields import Config, nested
from dflash_audit.refusal import Refused


class Taps(NamedTuple):
    """Layers as `key` names them; `first` is the number by which it means the first layer's output.

    `named` are the ids as written, `counted` as the engine counts: 0 is what goes into the
    first layer, n what comes out of the n-th.
    """

    key: str
    first: int
    named: Any
    counted: Any


def taps(config: Config) -> Taps | None:
    """What the first key names that names any; None where none does, which leaves it to the target's class.

    Raises `Refused` for ids that the engine cannot count on.
    """
    places: tuple[tuple[str, Any, int], ...] = (
        ("eagle_aux_hidden_state_layer_ids", config.get("eagle_aux_hidden_state_layer_ids"), 1),
        ("dflash_config.target_layer_ids", nested(config).get("target_layer_ids"), 0),
        ("dspark_target_layer_ids", config.get("dspark_target_layer_ids"), 0),
        ("target_layer_ids", config.get("target_layer_ids"), 0),
        ("dflash_config.layer_ids", nested(config).get("layer_ids"), 1),
        ("eagle_config.layer_ids", _part(config, "eagle_config").get("layer_ids"), 1),
    )
    for key, named, first in places:
        if named:
            found = Taps(key, first, named, named if first else _counted(named))
            return found if isinstance(found.counted, list) else None
    return None


def _part(config: Config, key: str) -> Mapping[str, Any]:
    value = config.get(key)
    return value if isinstance(value, Mapping) else {}


def _counted(ids: Any) -> list[Any]:
    """Layers counted on by one, as the engine does with each."""
    if not isinstance(ids, list) or not all(isinstance(layer, int | float) for layer in ids):
        raise Refused(f"target_layer_ids must be a list of layers, got {ids!r}")
    return [layer + 1 for layer in ids]
