"""Keys that the tensors prove: sizes, head counts, convolutions, selector, heads, biases and sinks."""

import json
from collections.abc import Iterator
from typing import Any, Final

from dflash_audit.diagnosis import laguna_mixtures, vllm_draft
from dflash_audit.diagnosis.sglang_draft import Draft, is_sglang, read_draft, whole
from dflash_audit.diagnosis.tensor_clues import INNER, SUBJECTS, Clue, Subject
from dflash_audit.engine_run import EngineRun
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Edit, Proposal, edit
from dflash_audit.sources.checkpoint import Checkpoint, Tensor

PUBLISHED: Final[dict[str, int]] = {"selector_top_k": 16, "pure_draft_prefix_len": 1}
"""What every published draft has, for a key that no tensor tells and that the engine does not do without.

Source: the public records of DFlash2 drafts (`docs/rules/key-against-tensors.md`); of a Domino draft's
SGLang 0.5.23 takes no other (`srt/speculative/dflash_utils.py`).
"""


def propose(facts: Facts) -> Iterator[Proposal]:
    """The wrong keys of one thing together, then those of all."""
    seen: set[tuple[tuple[tuple[str, ...], str], ...]] = set()
    for run in facts.runs:
        subjects = key_edits(run, facts.checkpoint)
        together = _together(subjects)
        for proposal in (*subjects, together):
            key = tuple((e.path, repr(e.new)) for e in proposal)
            if proposal and key not in seen:
                seen.add(key)
                yield proposal


def _together(subjects: list[Proposal]) -> Proposal:
    """One edit a key; where two subjects tell it, the first counts."""
    by_path: dict[tuple[str, ...], Edit] = {}
    for proposal in subjects:
        for each in proposal:
            by_path.setdefault(each.path, each)
    return tuple(by_path.values())


def key_edits(run: EngineRun, checkpoint: Checkpoint) -> list[Proposal]:
    """For each thing that keys build, the edits of those that the tensors contradict."""
    draft = read_draft(run, checkpoint) or _as_written(run, checkpoint)
    if draft is None:
        for_vllm = vllm_draft.read_draft(run, checkpoint)
        told = [_of_subject(for_vllm, subject) for subject in laguna_mixtures.SUBJECTS] if for_vllm else []
        return [edits for edits in told if edits]
    told = [_of_subject(draft, subject) for subject in SUBJECTS]
    return [edits for edits in (*told, _packed_sizes(draft), _sinks(draft)) if edits]


def _as_written(run: EngineRun, checkpoint: Checkpoint) -> Draft | None:
    """The draft by its config.json alone, where the config's class refuses it."""
    named = checkpoint.config.get("architectures")
    if not is_sglang(run) or not isinstance(named, list) or not named or not isinstance(named[0], str):
        return None
    return Draft(run.engine, named[0], checkpoint.config, checkpoint.config, checkpoint.tensors)


def _of_subject(draft: Draft, subject: Subject) -> Proposal:
    clues = [*subject.clues(draft)]
    wrong = [clue for clue in clues if clue.read != clue.told and not _cut_off(draft, clue)]
    if not wrong:
        # The tensors are of this thing, and a key that they do not tell may be lost alone.
        lost = [_published(draft, key) for key in subject.untold if clues and key in PUBLISHED]
        return tuple(each for each in lost if each and not draft.either(each.path[-1]))
    lacking = [key for key in subject.untold if draft.inner.get(key) is None]
    lacking = [key for key in lacking if not draft.either(key) or key in PUBLISHED]
    unknown = [key for key in lacking if key not in PUBLISHED]
    doubt = (
        f"No tensor tells {' and '.join(unknown)}: set them as the draft was trained." if unknown else None
    )
    found = [
        edit(
            draft.raw,
            _path(clue.place, clue.key),
            clue.told,
            f"{clue.evidence} {clue.key} {json.dumps(clue.told)}.",
            doubt,
        )
        for clue in wrong
    ]
    found += [_published(draft, key) for key in lacking if key in PUBLISHED]
    return tuple(each for each in found if each)


def _path(place: str, key: str) -> tuple[str, ...]:
    return (place, key) if place else (key,)


def _cut_off(draft: Draft, clue: Clue) -> bool:
    """Whether it is rather the tensors of the last layers that are lost: the list of layers has them too."""
    if clue.key != "num_hidden_layers":
        return False
    types: Any = draft.raw.get("layer_types")
    said = whole(draft.raw.get(clue.key))
    return isinstance(types, list) and said is not None and len(types) >= said > (whole(clue.told) or 0)


def _published(draft: Draft, key: str) -> Edit | None:
    """The value that stands where the engine does not look, else the one that published drafts have."""
    value = PUBLISHED[key]
    elsewhere = whole(draft.raw.get(key))
    if elsewhere:
        why = f"It stands at the top of config.json, where this engine does not look for {key}."
        return edit(draft.raw, (INNER, key), elsewhere, why)
    return edit(
        draft.raw,
        (INNER, key),
        value,
        f"The engine does not do without it, and published drafts have {value}.",
        f"No tensor tells {key}: set what the draft was trained with.",
    )


def _packed_sizes(draft: Draft) -> Proposal:
    """Sizes by the outputs of weights that are packed along their inputs."""
    heads = {t.shape[0] for name, t in draft.tensors.items() if name.endswith(".self_attn.q_norm.weight")}
    head = heads.pop() if len(heads) == 1 else 0
    found = []
    for key, module, divisor in (
        ("intermediate_size", "mlp.gate_proj", 1),
        ("num_attention_heads", "self_attn.q_proj", head),
        ("num_key_value_heads", "self_attn.k_proj", head),
    ):
        packed = {
            name: t for name, t in draft.tensors.items() if _outputs(draft, name, module, t) is not None
        }
        rows = {_outputs(draft, name, module, t) or 0 for name, t in packed.items()}
        size = rows.pop() if len(rows) == 1 else 0
        if divisor and size and size % divisor == 0 and whole(draft.config.get(key)) != size // divisor:
            name, tensor = next(iter(packed.items()))
            why = f"{name} {list(tensor.shape)} was made with {key} {size // divisor}."
            found.append(edit(draft.raw, (key,), size // divisor, why))
    return tuple(each for each in found if each)


OUTPUTS: Final = {"weight_packed": 0, "qweight": 1}
"""Packed weight -> the axis of its outputs."""


def _outputs(draft: Draft, name: str, module: str, tensor: Tensor) -> int | None:
    """Outputs of the weight of that module, if this is one that is packed along its inputs.

    AWQ's qweight is packed along its outputs, as its zeros are, so both are as wide.
    """
    leaf = name.rpartition(".")[2]
    if not name.endswith(f".{module}.{leaf}") or len(tensor.shape) != 2:
        return None
    zeros = draft.tensors.get(name.removesuffix(leaf) + "qzeros")
    if leaf == "qweight" and zeros is not None and zeros.shape[-1:] == tensor.shape[-1:]:
        return None
    four_bits = leaf == "weight" and tensor.dtype == "U8"
    return tensor.shape[0 if four_bits else OUTPUTS[leaf]] if four_bits or leaf in OUTPUTS else None


def _sinks(draft: Draft) -> Proposal:
    """The key of attention sinks where another one announces them, which this engine does not read."""
    names = [name for name in draft.tensors if name.endswith(".self_attn.attention_sink_bias")]
    if not names or draft.nemotron or draft.inner.get("attention_sink_bias") is True:
        return ()
    why = f"{names[0]} is on disk, and the engine builds it by this key alone."
    found = edit(draft.raw, (INNER, "attention_sink_bias"), True, why)
    return (found,) if found else ()
