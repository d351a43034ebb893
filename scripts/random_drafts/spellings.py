"""The ways in which a quantizer may spell a module in an ignore list or among its targets."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from random_drafts.case import Case

FUSED: Final = {"q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj"} | {
    "gate_proj": "gate_up_proj",
    "up_proj": "gate_up_proj",
}


def fused(module: str) -> str:
    """The name of the fused module that holds this one, or its own."""
    head, dot, last = module.rpartition(".")
    return f"{head}{dot}{FUSED.get(last, last)}"


def last(module: str) -> str:
    return module.rpartition(".")[2]


def any_layer(module: str) -> str:
    """A regular expression that matches the module in every layer."""
    return re.sub(r"\\\.[0-9]+\\\.", r"\\.[0-9]+\\.", re.escape(module))


SPELLINGS: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "in full": lambda m: [m],
    "below model": lambda m: [f"model.{m}"],
    "fused": lambda m: [fused(m)],
    "both": lambda m: [m, fused(m)],
    "last part": lambda m: [last(m)],
    "last two parts": lambda m: [".".join(m.split(".")[-2:])],
    "regex": lambda m: ["re:" + re.escape(m)],
    "regex to its end": lambda m: ["re:" + re.escape(m) + "$"],
    "regex of the last part": lambda m: [f"re:.*{last(m)}$"],
    "regex of both": lambda m: [f"re:.*({last(m)}|{last(fused(m))})$"],
    "regex in every layer": lambda m: ["re:.*" + any_layer(m)],
    "regex below something": lambda m: ["re:.*\\." + re.escape(last(m)) + "$"],
    "regex below anything": lambda m: ["re:(?:.*[.])?" + re.escape(last(m)) + "$"],
    "regex not at the start": lambda m: ["re:" + re.escape(last(m))],
    "its parent": lambda m: [m.rpartition(".")[0] or m],
    "regex of its parent": lambda m: [f"re:.*{re.escape(m.rpartition('.')[0])}.*"],
    "upper case": lambda m: [m.upper()],
    "all shards": lambda m: [
        f"{m.rpartition('.')[0]}.{part}" for part, whole in FUSED.items() if whole == last(fused(m))
    ] or [m],
    "with the parameter": lambda m: [f"{m}.weight"],
    "glob": lambda m: [f"*{last(m)}"],
    "glob of both": lambda m: [f"*{last(m)}", f"*{last(fused(m))}"],
}  # fmt: skip


def spelled(case: Case, module: str) -> list[str]:
    """The entries for a module in one of the spellings, mostly in one that could work."""
    return SPELLINGS[case.rng.choice([*SPELLINGS])](module)
