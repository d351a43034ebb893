"""The draft class that the tensors tell, and what to write into `architectures`; no rule of its own."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dflash_audit.diagnosis.sglang_draft import LAGUNA, SELECTORS
from dflash_audit.drops import DSPARK
from dflash_audit.kinds import named
from dflash_audit.sources.checkpoint import Checkpoint


class Family(NamedTuple):
    """Drafts with tensors that no other has: `classes` are those that build them, the first to be named.

    `keys` are those that such a class needs, in dflash_config if they are `nested`. `of_vllm` is the class of
    a family that vLLM alone has.
    """

    name: str
    tensors: re.Pattern[str]
    classes: tuple[str, ...]
    keys: tuple[str, ...] = ()
    nested: bool = False
    of_vllm: str | None = None

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
        "Gemma 4 DSpark",
        re.compile(r"layers\.\d+\.(pre|post)_feedforward_layernorm\..*"),
        (),
        of_vllm="Gemma4DSparkModel",
    ),
    Family(
        "DSpark",
        re.compile(r"(markov_head\.)?markov_w[12]\..*"),
        ("Qwen3DSparkModel", *sorted(DSPARK - {"Qwen3DSparkModel"})),
        ("markov_rank", "markov_head_type"),
    ),
    Family(
        "Laguna",
        re.compile(r"(aux_hidden_norms\.\d+|layers\.\d+\.self_attn\.g_proj)\..*"),
        (LAGUNA,),
    ),
    Family(
        "DFlash2",
        re.compile(r"candidate_selector\..*"),
        ("DFlash2DraftModel", *sorted(SELECTORS - {"DFlash2DraftModel"})),
        ("selector_rank", "selector_top_k"),
        nested=True,
    ),
    Family("LiLiCorr", re.compile(r"lilicorr\..*"), ("LiLiCorrDraftModel",)),
    Family("XPress", re.compile(r"xpress_head\..*"), (), of_vllm="Qwen3XPressModel"),
    Family("HunyuanVL", re.compile(r"layers\.\d+\.self_attn\.(query|key)_layernorm\..*"), ()),
)
"""Source: SGLang 0.5.23 `srt/models/dflash.py`, `dspark.py`, `lilicorr.py`;
vLLM 0.33.0 `model_executor/models/registry.py`, `qwen3_xpress.py`, `gemma4_mtp.py`."""

PLAIN: Final = "DFlashDraftModel"
PLAIN_FAMILY: Final = Family("plain DFlash", re.compile(r"(fc|hidden_norm)\.weight"), (PLAIN,))
"""Its tensors are those of every draft: what none of the others is, and has them, is a plain one."""


def told_by_tensors(checkpoint: Checkpoint) -> Family | None:
    """The family that the tensors are of, None where they are no draft's."""
    if not named(checkpoint.tensors, PLAIN_FAMILY.tensors):
        return None
    return next((each for each in FAMILIES if named(checkpoint.tensors, each.tensors)), PLAIN_FAMILY)


def class_to_name(family: Family, config: Mapping[str, Any], of_vllm: bool = False) -> str:
    """The class to name for an engine, in a sentence, and those of its keys that `config` lacks."""
    own = (family.of_vllm,) if of_vllm and family.of_vllm else family.classes
    if not own:
        return _none_to_name(family, of_vllm)
    place, where = config, "at the top of config.json"
    if family.nested:
        inner = config.get("dflash_config")
        place, where = inner if isinstance(inner, Mapping) else {}, "in dflash_config"
    lacking = [key for key in family.keys if place.get(key) is None]
    beside = f", with {' and '.join(lacking)} {where}" if lacking else ""
    a_list = ", a list of names and no string" if isinstance(config.get("architectures"), str) else ""
    return f'Set architectures to ["{own[0]}"]{a_list}{beside}.'


def _none_to_name(family: Family, of_vllm: bool) -> str:
    lacking = f"This engine has no class for {family.name} drafts"
    if family.of_vllm is not None and not of_vllm:
        return f"{lacking}: serve it with vLLM, as {family.of_vllm}."
    return f"{lacking}, nor has another that this audit replays."
