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

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from dflash_audit.diagnosis.sglang_draft import SELECTORS, by_name, is_sglang, read_draft
from dflash_audit.drops import DSPARK
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.kinds import named
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.sources.tensors import as_tensors

PLAIN: Final = "DFlashDraftModel"


class Family(NamedTuple):
    """Drafts with tensors that no other has: `classes` are those that build them, the first to be named.

    `keys` are those that such a class needs, in dflash_config if they are `nested`.
    """

    name: str
    tensors: re.Pattern[str]
    classes: tuple[str, ...]
    keys: tuple[str, ...] = ()
    nested: bool = False

    @property
    def named(self) -> str:
        """Its name after its article."""
        return f"{'an' if self.name == 'XPress' else 'a'} {self.name}"

    def named_anyhow(self, name: str) -> bool:
        """Whether a tensor is one of them, under whatever prefix."""
        parts = name.split(".")
        return any(self.tensors.fullmatch(".".join(parts[at:])) for at in range(len(parts)))


FAMILIES: Final = (
    Family(
        "DSpark",
        re.compile(r"(markov_head\.)?markov_w[12]\..*"),
        ("Qwen3DSparkModel", *sorted(DSPARK - {"Qwen3DSparkModel"})),
        ("markov_rank", "markov_head_type"),
    ),
    Family(
        "Laguna",
        re.compile(r"(aux_hidden_norms\.\d+|layers\.\d+\.self_attn\.g_proj)\..*"),
        ("DFlashLagunaForCausalLM",),
    ),
    Family(
        "DFlash2",
        re.compile(r"candidate_selector\..*"),
        ("DFlash2DraftModel", *sorted(SELECTORS - {"DFlash2DraftModel"})),
        ("selector_rank", "selector_top_k"),
        nested=True,
    ),
    Family("LiLiCorr", re.compile(r"lilicorr\..*"), ("LiLiCorrDraftModel",)),
    Family("XPress", re.compile(r"xpress_head\..*"), ()),
    Family("HunyuanVL", re.compile(r"layers\.\d+\.self_attn\.(query|key)_layernorm\..*"), ()),
)
"""Source: SGLang 0.5.23 `srt/models/dflash.py`, `dspark.py`, `lilicorr.py`;
vLLM 0.33.0 `model_executor/models/qwen3_xpress.py`."""


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
        _mend(family, config),
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
    names = by_name(as_tensors(checkpoint.tensors))
    if "fc.weight" not in names and "hidden_norm.weight" not in names:
        return
    family = next((f for f in FAMILIES if named(checkpoint.tensors, f.tensors)), None)
    mend = _mend(family, checkpoint.config) if family else f'Set architectures to ["{PLAIN}"].'
    what = family.named if family else "a plain DFlash"
    known_as = checkpoint.config.get("architectures")
    yield _finding(run, f"architectures is {known_as}, and the tensors are those of {what} draft.", mend, ())


def _mend(family: Family, config: Mapping[str, Any]) -> str:
    """The class to name, and those of its keys that are not there."""
    if not family.classes:
        return f"This engine has no class for {family.name} drafts: serve it with another."
    place, where = config, "at the top of config.json"
    if family.nested:
        inner = config.get("dflash_config")
        place, where = inner if isinstance(inner, Mapping) else {}, "in dflash_config"
    lacking = [key for key in family.keys if place.get(key) is None]
    beside = f", with {' and '.join(lacking)} {where}" if lacking else ""
    return f'Set architectures to ["{family.classes[0]}"]{beside}.'


def _finding(run: EngineRun, message: str, hint: str, subjects: Iterable[str]) -> Finding:
    return Finding(
        "wrong-class", "warning", run.engine, "architectures", message, hint, ("architectures", *subjects)
    )
