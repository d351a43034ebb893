"""A word of a closed list that is misspelt: the nearest one that the engine has."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from dflash_audit.dtypes import DENSE_FLOATS
from dflash_audit.engines.sglang.profile import NEXT
from dflash_audit.engines.sglang.rope import TYPES
from dflash_audit.facts import Facts
from dflash_audit.hf_config.model_types import ONLY_IN_TRANSFORMERS, READ_BY_SGLANG
from dflash_audit.repairs.edit import ABSENT, Edit, Proposal

KINDS_OF_LAYER: Final = ("full_attention", "sliding_attention")
ROPES: Final = ("rope_parameters", "rope_scaling")
MODEL_TYPE: Final = "model_type"
PUBLISHED: Final = "qwen3"
"""The model type of nearly every published draft, of whatever class (`docs/published.md`)."""

WORDS: Final[Mapping[tuple[str, ...], Iterable[str]]] = {
    ("hidden_act",): NEXT.activations,
    ("dtype",): sorted(DENSE_FLOATS),
    ("torch_dtype",): sorted(DENSE_FLOATS),
    (MODEL_TYPE,): (PUBLISHED, *sorted(READ_BY_SGLANG | ONLY_IN_TRANSFORMERS)),
    **{(rope, key): sorted(TYPES) for rope in ROPES for key in ("rope_type", "type")},
}
"""Keys down to a value -> the words that an engine takes there."""


def propose(facts: Facts) -> Iterator[Proposal]:
    """The nearest word, one value each; and a model type for a config without one."""
    config = facts.checkpoint.config
    for path, words in WORDS.items():
        *above, key = path
        holder = config.get(above[0]) if above else config
        written = holder.get(key) if isinstance(holder, Mapping) else None
        near = _near(written, words)
        if near is not None:
            yield (Edit(path, written, near, f"{near} is the nearest word that the engine has.", DOUBT),)
    yield _layer_types(config)
    if config.get(MODEL_TYPE) is None and MODEL_TYPE in config:
        yield (Edit((MODEL_TYPE,), None, PUBLISHED, WITHOUT, WHICH),)
    elif MODEL_TYPE not in config:
        yield (Edit((MODEL_TYPE,), ABSENT, PUBLISHED, WITHOUT, WHICH),)


DOUBT: Final = "No tensor tells the word: see that it is the one that is meant."
WITHOUT: Final = "The engine does not read a config without it, and published drafts have this one."
WHICH: Final = "Its class gives the values of the keys that are left out: see that they are the draft's."


def _near(written: Any, words: Iterable[str]) -> str | None:
    known = [*words]
    if not isinstance(written, str) or written in known:
        return None
    lowered = written.lower().removeprefix("torch.")
    return next(iter(get_close_matches(lowered, known, n=1, cutoff=0.7)), None)


def _layer_types(config: Mapping[str, Any]) -> Proposal:
    written = config.get("layer_types")
    if not isinstance(written, list):
        return ()
    new = [_near(each, KINDS_OF_LAYER) or each for each in written]
    why = "These are the nearest words that the engine has."
    return (Edit(("layer_types",), written, new, why, DOUBT),) if new != written else ()
