"""The llm-compressor recipe of an export that serves where no change of config.json does."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dflash_audit.diagnosis.ignore_lists import pattern
from dflash_audit.diagnosis.kernel_limits import limit
from dflash_audit.diagnosis.stored import (
    State,
    faults,
    is_linear,
    state_of,
    stored_in,
    stored_modules,
    takes_dense,
)
from dflash_audit.engine_run import EngineRun
from dflash_audit.facts import Facts
from dflash_audit.judge import engine_findings
from dflash_audit.repairs.edit import ABSENT, edit
from dflash_audit.repairs.quantization_config import KEYS, told_schemes
from dflash_audit.repairs.what_if import with_edits
from dflash_audit.tree import FUSED, Module, Modules, Tree

OVER_QUANTIZATION: Final = frozenset(("quant_config", "build"))
"""Stages at which an engine stops over the quantization of a layer, among other things."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """`text` is the YAML, `dense` the names of layers that it leaves dense, by engines and on disk.

    `as_stored` says whether the scheme is the one that is stored, rather than one that the engines take.
    """

    text: str
    dense: tuple[str, ...]
    as_stored: bool = True


Group = Mapping[str, Any]
"""`weights` and `input_activations` of a config group."""

PLAIN: Final[tuple[Group, ...]] = tuple(
    {
        "weights": {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "group", "group_size": size},
        "input_activations": None,
    }
    for size in (128, 64, 32)
)
"""Packed integers of 8 bits, which every profile takes, where the stored scheme is one that none does."""

NO_LIMIT: Final[tuple[Group, ...]] = (
    {
        "weights": {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel"},
        "input_activations": {
            "num_bits": 8,
            "type": "float",
            "symmetric": True,
            "strategy": "token",
            "dynamic": True,
        },
    },
)
"""FP8 by row, whose kernel takes every shape (`diagnosis/kernel_limits.py`): what to quantize
where limits leave no layer to."""


def recipe(facts: Facts) -> Recipe | None:
    """The recipe for the scheme that is stored, or for one that the engines take where they refuse that.

    None where nothing is quantized, where another fault remains, or where no scheme helps.

    Dense stays what an engine cannot build quantized, what is dense on disk, a fused
    layer with shards of both, and what the card's kernels do not take.
    """
    states = {stored.state for stored in stored_modules(facts.checkpoint.tensors).values()}
    bare = _bare(facts)
    deciding = [run for run in facts.runs if run.engine in facts.gating] or [*facts.runs]
    dense = {run.engine: run for run in bare.runs}
    limited = {
        name
        for run in deciding
        for found in engine_findings(run, facts)
        if found.rule == "kernel-limit"
        for name in found.subjects
    }
    if State.QUANTIZED not in states or not (
        limited or any(_over_quantization(run, dense[run.engine]) for run in deciding)
    ):
        return None
    names = _dense_names(bare, limited)
    stored = [*_stored_groups(facts)]
    deciders = [run.engine for run in deciding]
    whole = _dense_names(bare, ())
    tries = [*((group, names) for group in (*stored, *PLAIN)), *((group, whole) for group in NO_LIMIT)]
    for group, left in tries:
        if _taken(facts, group, left, deciders):
            return Recipe(_text(group, left), left, as_stored=group in stored)
    return None


def _text(group: Group, names: tuple[str, ...]) -> str:
    lines = [
        "quant_stage:",
        "  quant_modifiers:",
        "    QuantizationModifier:",
        f"      ignore: {json.dumps(list(pattern(names)))}",
        "      config_groups:",
        "        group_0:",
        '          targets: ["Linear"]',
        *(f"          {key}: {json.dumps(value)}" for key, value in group.items()),
    ]
    return "\n".join(lines)


def _taken(facts: Facts, group: Group, names: tuple[str, ...], engines: list[str]) -> bool:
    """Whether the engines build a draft by it in which a layer is quantized, and have the kernels."""
    config = {
        "quant_method": "compressed-tensors",
        "format": _format(group),
        "config_groups": {"group_0": {"targets": ["Linear"], **group}},
        "ignore": list(pattern(names)),
    }
    edits = [edit(facts.checkpoint.config, (key,), ABSENT, "") for key in KEYS[1:]]
    edits.append(edit(facts.checkpoint.config, KEYS[:1], config, ""))
    after = with_edits(facts, [each for each in edits if each])
    runs = [run for run in after.runs if run.engine in engines]
    capability = facts.conditions.capability
    return all(run.tree is not None and _runs(run.tree, capability) for run in runs)


def _runs(tree: Tree, capability: int) -> bool:
    quantized = [m for m in tree.modules.values() if m.linear is not None and not takes_dense(m)]
    return bool(quantized) and not any(limit(module, capability) for module in quantized)


def _format(group: Group) -> str:
    """The layout that llm-compressor writes a group in."""
    weights = group["weights"]
    if weights.get("type", "int") == "int":
        return "int-quantized" if group["input_activations"] else "pack-quantized"
    return "nvfp4-pack-quantized" if weights.get("num_bits") == 4 else "float-quantized"


def _over_quantization(run: EngineRun, dense: EngineRun) -> bool:
    """Whether an engine loses tensors of a linear, builds it otherwise than it is stored, or refuses to.

    `dense` is its run on the draft without a quantization config: what it refuses there too is another fault.
    """
    if run.plan is None:
        refused = run.refusal is not None and run.refusal.stage in OVER_QUANTIZATION
        return refused and dense.tree is not None
    return faults(run) > 0


def _stored_groups(facts: Facts) -> Iterator[Group]:
    """Weights and activations as one group of compressed-tensors declares them, as the tensors tell."""
    own = facts.checkpoint.config.get("quantization_config")
    groups = own.get("config_groups") if isinstance(own, Mapping) else None
    told: Any = next((scheme.config.get("config_groups") for scheme in told_schemes(facts)), None)
    for found in (groups, told):
        if isinstance(found, Mapping) and len(found) == 1:
            group = next(iter(found.values()))
            if isinstance(group, Mapping) and isinstance(group.get("weights"), Mapping):
                weights = {k: v for k, v in group["weights"].items() if v not in (None, {})}
                yield {"weights": weights, "input_activations": group.get("input_activations")}


def _bare(facts: Facts) -> Facts:
    removed = [edit(facts.checkpoint.config, (key,), ABSENT, "") for key in KEYS]
    return with_edits(facts, [each for each in removed if each])


def _dense_names(bare: Facts, limited: Iterable[str]) -> tuple[str, ...]:
    """Last parts of the names to leave dense, whole names where a quantized layer has the same last part."""
    dense: dict[str, None] = {}
    quantized: set[str] = set()
    limits = {name.removesuffix(".weight") for name in limited}
    for run in bare.runs:
        modules = run.tree.modules if run.tree else Modules()
        stored = stored_in(modules, bare.checkpoint.tensors)
        for name, module in modules.items():
            if not is_linear(module):
                continue
            stays = module.linear is None or state_of(stored.get(name, ())) is not State.QUANTIZED
            if stays or name in limits:
                dense.update(dict.fromkeys(_names(module)))
            else:
                quantized.update(_names(module))
    lasts = {_last(name) for name in quantized - set(dense)}
    return tuple(dict.fromkeys(name if _last(name) in lasts else _last(name) for name in dense))


def _names(module: Module) -> Iterator[str]:
    """Under which a module is known: built, asked about, and by shard on disk."""
    yield module.name
    if module.prefix is not None:
        yield module.prefix
    above, dot, last = module.name.rpartition(".")
    yield from (f"{above}{dot}{shard}" for shard in FUSED.get(last, {}))


def _last(name: str) -> str:
    return name.rpartition(".")[2]
