"""The matching of ignore and target lists: an input is a method, names, and a list of the method's entries.

A pattern that might not come to an end is bounded in a process of its own, too slow to start for each
input: here such a pattern counts as endless at once. One that is matched without that process must come to
its end, and be told to match where `re` says so.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, get_args

from dflash_audit import bounded_match
from dflash_audit.match import regex
from dflash_audit.quantization import METHODS, reader
from dflash_audit.quantization.config import Surroundings
from dflash_audit.refusal import Endless, NotModelled, Refused
from dflash_audit.tree import FUSED, Linear
from fuzzing.draw import Draw
from fuzzing.endless import endless_at_once

NAMES: Final = ("qkv_proj", "layers.0.self_attn.qkv_proj", "fc", "", "layers.1.mlp.gate_up_proj", "o_proj")
ENTRIES: Final = (
    "re:.*self_attn\\.(q|k|v)_proj$",
    "re:(.*\\.)?qkv_proj$",
    "-:.*mlp.*",
    "+:.*q_proj",
    "layers.0.*",
    "model.layers.*.self_attn*",
    "fc",
    "lm_head",
    "Linear",
    "re:",
    "re:(a+)+$",
    "re:[",
)
PIECES: Final = (
    ".*",
    "(",
    ")",
    "|",
    "?",
    "+",
    "*",
    "{2,}",
    "a",
    "q_proj",
    "\\.",
    "[^.]",
    "(?:",
    "(?=",
    "$",
    "\\1",
    "{",
    "-:",
    "re:",
)
ODD: Final[tuple[Any, ...]] = (None, 0, 1.5, [], {}, True, [["a"]])
CONFIG: Final[dict[str, Any]] = {
    "quant_method": "fp8",
    "activation_scheme": "dynamic",
    "bits": 4,
    "group_size": 32,
    "desc_act": False,
    "sym": True,
    "zero_point": True,
    "lm_head": False,
    "quant_algo": "FP8",
    "format": "pack-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {
                "num_bits": 4,
                "type": "int",
                "strategy": "group",
                "group_size": 32,
                "symmetric": True,
            },
        }
    },
}
LISTS: Final = ("ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules")
LAYER: Final = Linear("QKVParallelLinear", "qkv_proj", 64, (64, 32, 32), 64, (64, 32, 32))


def check(data: bytes) -> None:
    """Every list is taken or refused; a match that is tried here ends, and means what `re` means."""
    draw = Draw(data)
    method = draw.one_of([*METHODS])
    name = draw.one_of(NAMES) or draw.text()
    entries = [_entry(draw) for _ in range(1 + draw.number() % 4)]
    with endless_at_once():
        for entry in entries:
            if isinstance(entry, str):
                _same_as_re(entry.removeprefix("re:"), name)
        _ask(method, entries, name, draw)


def _entry(draw: Draw) -> Any:
    kind = draw.number() % 8
    if kind < 3:
        return draw.one_of(ENTRIES)
    if kind < 6:
        return "re:" * (kind == 5) + "".join(draw.one_of(PIECES) for _ in range(draw.number() % 12))
    return draw.text() if kind == 6 else draw.one_of(ODD)


def _same_as_re(pattern: str, name: str) -> None:
    for how in get_args(bounded_match.How):
        try:
            ours: bool | None = regex(pattern, name, how)
        except (Endless, NotModelled):
            continue
        except Refused:
            ours = None
        try:
            theirs: bool | None = getattr(re, how)(pattern, name) is not None
        except (re.error, OverflowError, RecursionError):
            theirs = None
        assert ours == theirs


def _ask(method: str, entries: list[Any], name: str, draw: Draw) -> None:
    config = {**CONFIG, "quant_method": method, **{key: entries for key in LISTS}}
    texts: Iterable[str] = [entry for entry in entries if isinstance(entry, str)]
    config["dynamic"] = config["extra_config"] = {
        text: draw.one_of(({}, {"bits": 8}, False)) for text in texts
    }
    if draw.number() % 2:
        config["config_groups"] = {"group_0": {**CONFIG["config_groups"]["group_0"], "targets": entries}}
    try:
        quant = reader(method)(config, Surroundings({f: tuple(s) for f, s in FUSED.items()}, 90, config))
        for looked_up in (LAYER.prefix, name):
            quant.linear(Linear(LAYER.module_class, looked_up, 64, (64, 32, 32), 64, (64, 32, 32)))
    except (Refused, NotModelled):
        return
    for entry in quant.left_dense:
        for each in quant.names_looked_up(name):
            try:
                assert quant.leaves_dense(entry, each) in (True, False)
            except (Refused, NotModelled):
                continue
