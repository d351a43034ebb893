"""A key stands at two places of the config with different values.

Drafts hold their keys at the top of config.json or in `dflash_config`; older ones, merged ones and
hand-edited ones in both.

## Why it matters

The engine reads one of the two and does not compare. Whoever mends the other one changes nothing, and an
engine that looks at the other place first serves another draft.

## Example

Before: SGLang reads 8.

    "block_size": 16,
    "dflash_config": {"block_size": 8}

After:

    "dflash_config": {"block_size": 8}

## How to fix

Keep the right value, at the place that the finding says is read. A null there counts too: it hides the
other.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from dflash_audit.diagnosis.sglang_draft import Draft, read_draft
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint


class Places(NamedTuple):
    """Where the engine looks for a key, the first that is there counts; in a DSpark draft `dspark` before."""

    paths: tuple[str, ...]
    dspark: tuple[str, ...] = ()


PLACES: Final = (
    Places(("dflash_config.block_size", "block_size"), ("dspark_block_size",)),
    Places(
        ("dflash_config.mask_token_id", "mask_token_id"),
        ("dspark_noise_token_id", "dspark_config.mask_token_id"),
    ),
    Places(("dflash_config.mask_token", "mask_token")),
    Places(("dflash_config.num_target_layers", "num_target_layers")),
    Places(("dflash_config.target_layer_ids", "target_layer_ids"), ("dspark_target_layer_ids",)),
    Places(("dflash_config.projector_type", "projector_type")),
    Places(("dflash_config.shift_label", "shift_label")),
    Places(("dflash_config.gru_hidden_dim", "gru_hidden_dim")),
    Places(
        (),
        ("markov_rank", "dspark_markov_rank", "dspark_config.markov_rank", "dflash_config.markov_rank"),
    ),
    Places(
        (),
        ("markov_head_type", "dspark_config.markov_head_type", "dflash_config.markov_head_type"),
    ),
    Places(("rope_parameters.rope_theta", "rope_theta")),
)
"""Source: SGLang 0.5.23 `srt/speculative/dflash_utils.py`, `parse_dflash_draft_config`;
`srt/speculative/dspark_components/dspark_config.py`, `parse_dspark_draft_config`;
`srt/models/dspark.py`, `build_markov_head`, which reads the top alone;
`srt/utils/hf_transformers/common.py`, `get_rope_config`."""


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding a key that has two values."""
    draft = read_draft(run, checkpoint)
    for places in PLACES if draft else ():
        assert draft is not None
        given = _given(draft, places)
        if len({json.dumps(value, sort_keys=True) for value in given.values()}) > 1 and _differ(given):
            yield _finding(draft, given)


def _given(draft: Draft, places: Places) -> Mapping[str, Any]:
    """Path -> value of each place where config.json has the key, in the order in which it is read."""
    found = {}
    for path in (*(places.dspark if draft.dspark else ()), *places.paths):
        place, _, key = path.rpartition(".")
        holder = draft.raw.get(place) if place else draft.raw
        # A null counts in dflash_config, where the engine asks whether the key is there.
        if isinstance(holder, Mapping) and key in holder and (place or holder[key] is not None):
            found[path] = holder[key]
    return found


def _differ(given: Mapping[str, Any]) -> bool:
    first, *others = given.values()
    return any(value != first for value in others)


def _finding(draft: Draft, given: Mapping[str, Any]) -> Finding:
    read, *others = given
    values = ", ".join(f"{path} is {json.dumps(value)}" for path, value in given.items())
    return Finding(
        rule="key-twice",
        severity="warning",
        engine=draft.engine,
        subject=read,
        message=f"{values}: {draft.engine} reads {read}.",
        hint=f"Keep the right value as {read}, and remove {', '.join(others)}.",
        subjects=tuple(given),
    )
