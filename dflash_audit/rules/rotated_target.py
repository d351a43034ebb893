"""The target was rotated before it was quantized.

SpinQuant (its first rotation, R1) and QuaRot turn the whole residual stream of a model by a Hadamard matrix,
folded into the weights, so that it quantizes better. The model answers as before; what its layers put out is
in other coordinates.

## Why it matters

A draft reads what the layers put out. One that was trained on the model before it was rotated accepts
nothing at all, and nothing fails. Quantization that turns a layer's inputs alone (QuIP, R2 to R4) does no
harm.

## Example

A target that says:

    "quantization_config": {"transform_config": {"config_groups": {"R1": {"type": "hadamard"}}}}

## How to fix

Serve the draft that was trained on the rotated target, as vendors publish one beside each quantization, or a
target that was quantized without that rotation.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis.with_target import read_pair
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

NAMES: Final = ("quarot", "spinquant")
"""Words by which quantizers name a rotation of the residual stream, as a key or as a method."""

METHOD_KEYS: Final = ("algo", "algorithm", "method", "rotation", "transform")
"""Last words of the keys under which a quantizer names a method: `quant_algo`, `rotation_method`."""

BARE_KEYS: Final = ("name", "type")
"""Keys that name a method as well as anything else: there the name has to stand alone."""

SWITCHES: Final = ("enabled", "enable")
"""Keys that switch off what they stand in."""

OUTPUTS: Final = ("weight_output", "output")
"""Where a transform of compressed-tensors turns what a module puts out. Source: compressed-tensors 0.20.0
`transform/transform_args.py`, `TransformLocation`."""


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding if the target's quantization config says so.

    Public record: a work log of Laguna-S-2.1, whose BF16 draft accepts nothing beside the INT4 target.
    """
    pair = read_pair(run, checkpoint, conditions)
    if pair is None or pair.target.quantization_config is None:
        return
    mark = marked(pair.target.quantization_config)
    if mark is None:
        return
    yield Finding(
        rule="rotated-target",
        severity="warning",
        engine=run.engine,
        subject=f"target.{mark}",
        message=(
            f"The target's quantization config says by {mark} that its residual stream is rotated: a draft"
            " that was not trained on this target reads other numbers than it knows, and accepts nothing."
        ),
        hint="Serve the draft that was trained on this very target, or a target without the rotation.",
        subjects=(f"target.{mark}",),
    )


def marked(quantization: Mapping[str, Any]) -> str | None:
    """The key that tells of a rotated residual stream; None where none does."""
    transforms = quantization.get("transform_config")
    groups = transforms.get("config_groups") if isinstance(transforms, Mapping) else None
    for name, group in groups.items() if isinstance(groups, Mapping) else ():
        if name.upper() == "R1" or _turns_the_embedding(group):
            return f"transform_config.config_groups.{name}"
    return next((key for key, value in quantization.items() if _names_one(key, value)), None)


def _turns_the_embedding(group: Any) -> bool:
    uses = group.get("apply") if isinstance(group, Mapping) else None
    return any(
        use.get("location") in OUTPUTS
        and isinstance(targets := use.get("targets"), list)
        and any("embed" in target.lower() for target in targets if isinstance(target, str))
        for use in (uses if isinstance(uses, list) else ())
        if isinstance(use, Mapping)
    )


def _names_one(key: str, value: Any) -> bool:
    """Whether a key or a method under it names such a rotation; what is switched off does not."""
    inside = [(key, value)]
    while inside:
        name, content = inside.pop()
        if not content or (
            isinstance(content, Mapping) and any(content.get(key) is False for key in SWITCHES)
        ):
            continue
        if _rotates(name) or (isinstance(content, str) and _is_rotation(name.lower(), content.lower())):
            return True
        if isinstance(content, Mapping):
            inside += content.items()
        elif isinstance(content, list):
            inside += [(name, item) for item in content]
    return False


def _is_rotation(key: str, value: str) -> bool:
    if key in BARE_KEYS:
        return value in NAMES
    return key.rpartition("_")[2].removesuffix("s") in METHOD_KEYS and _rotates(value)


def _rotates(words: str) -> bool:
    return any(name in words.lower() for name in NAMES)
