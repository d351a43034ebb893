"""The tensors are of another draft class than `architectures` names.

Some tensors belong to one family of drafts alone: a Markov head to DSpark, `aux_hidden_norms` and `g_proj`
to Laguna, a candidate selector to DFlash2, `lilicorr.*` to LiLiCorr.

## Why it matters

The engine builds what the class has. Tensors of another family have no module and are dropped without a
word: a DSpark draft served as DFlash also shifts every position. A class whose own tensors are not there
runs on what its memory holds.

## Example

Before, with `markov_head.markov_w1.weight` on disk:

    "architectures": ["DFlashDraftModel"]

After:

    "architectures": ["Qwen3DSparkModel"]

## How to fix

Name the class that the finding names. If the tensors are there by mistake, export the draft without them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dflash_audit.diagnosis.draft_class import FAMILIES, PLAIN, Family, class_to_name, told_by_tensors
from dflash_audit.diagnosis.sglang_draft import is_sglang, read_draft
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.kinds import named
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding a family whose tensors the class has no module for, or that it has modules for in vain."""
    if not is_sglang(run):
        return
    if run.refusal is not None and run.refusal.stage == "class" and run.unserved is None:
        yield from _unknown(run, checkpoint)
    draft = read_draft(run, checkpoint)
    for family in FAMILIES if draft else ():
        assert draft is not None
        found = named(checkpoint.tensors, family.tensors)
        if found and draft.model_class not in family.classes:
            names = [tensor.name.removeprefix("model.") for tensor in found]
            yield _foreign(run, family, names, checkpoint.config)
        elif draft.model_class in family.classes and not any(map(family.named_anyhow, draft.tensors)):
            yield _bare(run, family)


def _foreign(run: EngineRun, family: Family, found: list[str], config: Mapping[str, Any]) -> Finding:
    many = f"{len(found)} tensors, {found[0]} for one, are" if len(found) > 1 else f"{found[0]} is"
    return _finding(
        run,
        f"{many} of {family.named} draft. architectures names {run.model_class}, which has no module for"
        " them.",
        class_to_name(family, config),
        found,
    )


def _bare(run: EngineRun, family: Family) -> Finding:
    return _finding(
        run,
        f"architectures names {run.model_class}, {family.named} draft, and the checkpoint has none of the"
        " tensors that make one.",
        f"Set architectures to the class that the draft was trained as, {PLAIN} if it is a plain one; or"
        " export it again with all of its tensors.",
        (),
    )


def _unknown(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """The class that an unknown name may mean, by the tensors."""
    family = told_by_tensors(checkpoint)
    if family is None:
        return
    known_as = checkpoint.config.get("architectures")
    what = f"architectures is {known_as}, and the tensors are those of {family.named} draft."
    yield _finding(run, what, class_to_name(family, checkpoint.config), ())


def _finding(run: EngineRun, message: str, hint: str, subjects: Iterable[str]) -> Finding:
    return Finding(
        "wrong-class", "warning", run.engine, "architectures", message, hint, ("architectures", *subjects)
    )
