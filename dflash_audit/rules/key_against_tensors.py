"""A key of config.json is missing, or says something else than the tensors do.

The shapes of the tensors tell what they were made with: convolution taps and groups from `base_kernel` and
`kernel_projection`, the selector's rank from its codebooks, the vocabulary from every table over it. The
finding names the key, the value, and the tensor that tells it.

For vLLM it tells of one key, a Laguna draft's `mlp_layer_types`: where config.json does not have it, the
config's class takes every layer but the first for a mixture of 256 experts, and vLLM stops at the MLP that
the checkpoint holds there. SGLang builds one MLP in each layer whatever the key says.

## Why it matters

The engine builds from the config alone. A convolution or an attention sink whose key is lost is not built,
and its tensors are dropped without a word; a key that is missing may be filled by the config's class with a
value that looks right (`head_dim` 128, `vocab_size` 151936); a key with another value stops the load, or
cuts the tensors down. The other findings tell what then happens: this one tells the cause.

## Example

Before: the convolutions are on disk, and the config forgot them.

    "dflash_config": {"target_layer_ids": [1, 9, 17, 25, 33], "mask_token_id": 151669}

After, with what `layers.0.attention_conv.base_kernel` [2, 2, 4096] and `kernel_projection.weight` [1024,
4096] say:

    "dflash_config": {"conv_kernel_size": 2, "conv_group_size": 16, "target_layer_ids": [1, 9, 17, 25, 33],
                      "mask_token_id": 151669}

## How to fix

Set the key that the finding names to the value that it names, at the place that it names. A
`selector_top_k` is in no tensor: published DFlash2 drafts have 16. If the value in the config is the right
one, the tensors are of another draft: export them again.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis import laguna_mixtures, vllm_draft
from dflash_audit.diagnosis.sglang_draft import Draft, read_draft
from dflash_audit.diagnosis.tensor_clues import SUBJECTS, Clue, Subject
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

PLACES: Final = ("dflash_config", "dspark_config")
"""Objects of config.json that hold keys of a draft."""


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding for all wrong keys of one thing."""
    subjects, draft = SUBJECTS, read_draft(run, checkpoint)
    if draft is None:
        subjects, draft = laguna_mixtures.SUBJECTS, vllm_draft.read_draft(run, checkpoint)
    for subject in subjects if draft else ():
        assert draft is not None
        # Where config.json has the value already, this engine does not read it: unread-key tells of that.
        wrong = [
            clue
            for clue in subject.clues(draft)
            if clue.read != clue.told and _written(draft, clue) != clue.told
        ]
        if wrong:
            yield _finding(draft, subject, wrong)


def _finding(draft: Draft, subject: Subject, wrong: list[Clue]) -> Finding:
    facts = ", ".join(f"{clue.evidence} {clue.key} {json.dumps(clue.told)}" for clue in wrong)
    paths = tuple(clue.path for clue in wrong)
    values = ", ".join(f'"{clue.key}": {json.dumps(clue.told)}' for clue in wrong)
    place = f"in {wrong[0].place}" if wrong[0].place else "at the top of config.json"
    return Finding(
        rule="key-against-tensors",
        severity="warning",
        engine=draft.engine,
        subject=", ".join(paths),
        message=f"{facts}; config.json {_says(draft, wrong)}. {draft.engine} {subject.otherwise}.",
        hint=f"Set {values} {place}{_untold(draft, subject)}{''.join(clue.besides for clue in wrong)}.",
        subjects=paths,
    )


def _untold(draft: Draft, subject: Subject) -> str:
    """The keys that are needed too, that are not there, and that no tensor tells."""
    missing = [key for key in subject.untold if draft.either(key) is None]
    return f", and beside it {', '.join(missing)}, which no tensor tells" if missing else ""


def _says(draft: Draft, wrong: list[Clue]) -> str:
    """What config.json says of keys that the tensors contradict."""
    keys: dict[tuple[str, str], list[str]] = {}
    for clue in wrong:
        keys.setdefault(_predicate(draft, clue), []).append(clue.key)
    pronoun = "them" if len(wrong) > 1 else "it"
    return " and ".join(
        f"{verb} {pronoun if len(keys) == 1 else ', '.join(named)}{rest}"
        for (verb, rest), named in keys.items()
    )


def _places(draft: Draft) -> Mapping[str, Any]:
    """The objects of config.json that hold keys, its top under an empty name."""
    inner = {name: value for name in PLACES if isinstance(value := draft.raw.get(name), dict)}
    return {"": draft.raw, **inner}


def _written(draft: Draft, clue: Clue) -> Any:
    return _places(draft).get(clue.place, {}).get(clue.key)


def _predicate(draft: Draft, clue: Clue) -> tuple[str, str]:
    """What stands before and after the key in a sentence about config.json."""
    places, written = _places(draft), _written(draft, clue)
    if written is not None:
        return f"says {json.dumps(written)} for", ""
    elsewhere = next((name for name, place in places.items() if place.get(clue.key) is not None), None)
    if elsewhere is not None:
        where = f"in {elsewhere}" if elsewhere else "at its top"
        return "has", f" {where}, where this engine does not look"
    if clue.read is None or isinstance(clue.read, bool):
        return "does not have", ""
    return "does not have", f", and {json.dumps(clue.read)} is filled in"
