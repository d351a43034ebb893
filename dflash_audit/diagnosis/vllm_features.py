"""The features that a draft asks its target for and those that vLLM builds its `fc` for; no rule of its own.

vLLM joins what the target hands over for a first run as it starts, whatever the kind of draft, and stops if
that is not as wide as the draft's `fc` wants it.

Source: vLLM 0.33.0 `v1/worker/gpu/model_runner.py` (`profile_run`),
`v1/worker/gpu/spec_decode/dflash/speculator.py` (`propose`, of which the speculators of DFlash2, LiLiCorr,
XPress and DSpark have no other), `combine_hidden_states` of `model_executor/models/qwen3_dflash.py`,
`laguna_dflash.py`, `gemma4_dspark.py` and `models/beam/nvidia/dflash2.py`.
"""

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from dflash_audit.diagnosis.sglang_draft import BEAM, LAGUNA, Draft, whole
from dflash_audit.diagnosis.vllm_draft import GEMMA4_DRAFT, read_draft
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.vllm.draft import uses_aux, width_key
from dflash_audit.engines.vllm.taps import taps
from dflash_audit.refusal import Refused
from dflash_audit.sources.checkpoint import Checkpoint

if TYPE_CHECKING:
    from dflash_audit.diagnosis.vllm_pair import Pair

MOST_PICKED: Final = 3
"""As many features a target's class picks of more than six layers, and never more; see `picked`."""


class Features(NamedTuple):
    """What a draft asks for, and what it is built for.

    `key` names the layers that it asks for, `named` are their ids there and `asked` the same as
    vLLM counts: 0 is what goes into the first layer, n what comes out of the n-th. All three are
    None where the config names none, and the target's class says which. `fc` is built for
    `built_for` features of `width` each, None for the target's own; with `joined` there is none,
    and the features are used side by side as they are.
    """

    draft: Draft
    key: str | None
    named: tuple[int, ...] | None
    asked: tuple[int, ...] | None
    built_for: int
    width: int | None
    width_key: str
    joined: bool = False
    built_by: str = "dflash_config.target_layer_ids"
    """The key whose layers `fc` is built for, in a draft that is not built for those it asks for."""

    @property
    def first(self) -> int:
        """The number by which `key` means what the first layer puts out."""
        assert self.named and self.asked
        return self.named[0] - self.asked[0] + 1

    @property
    def distinct(self) -> int | None:
        """How many features come of a target that has them all; None where its class picks them."""
        return None if self.asked is None else len(set(self.asked))

    @property
    def repeated(self) -> list[int]:
        """The ids that are named more than once."""
        return sorted(layer for layer, times in Counter(self.named or ()).items() if times > 1)


def read_features(run: EngineRun, checkpoint: Checkpoint) -> Features | None:
    """What the draft asks for and is built for.

    None for another engine, for a draft that vLLM does not build, and for ids that are no whole numbers.
    """
    draft = None if run.tree is None else read_draft(run, checkpoint)
    if draft is None:
        return None
    try:
        found = taps(draft.config)
    except Refused:
        return None
    hidden, layers = whole(draft.config.get("hidden_size")), whole(draft.config.get("num_hidden_layers"))
    if hidden is None or layers is None:
        return None
    key, named, asked = None, None, None
    if found is not None:
        if not all(isinstance(layer, int) for layer in found.named):
            return None
        key, named, asked = _as_written(draft, found.key), tuple(found.named), tuple(found.counted)
    if draft.model_class == GEMMA4_DRAFT:
        by = "dspark_target_layer_ids" if draft.config.get("dspark_target_layer_ids") else "target_layer_ids"
        own = draft.config.get(by)
        built_for = len(own) if isinstance(own, list) else 0
        return Features(draft, key, named, asked, built_for, hidden, "hidden_size", built_by=by)
    nested = draft.inner.get("target_layer_ids")
    if draft.model_class in (BEAM, LAGUNA) and isinstance(nested, list):
        width = hidden if draft.model_class == BEAM else None
        return Features(draft, key, named, asked, len(nested), width, "hidden_size")
    if not uses_aux(draft.config):
        return Features(draft, key, named, asked, 1, hidden, "hidden_size", joined=True)
    by = width_key(draft.config)
    built_for = layers if asked is None else len(asked)
    return Features(draft, key, named, asked, built_for, whole(draft.config.get(by)), by)


def beside_target(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> "Pair | None":
    """The pair, for rules that look at a draft without a target too; None where none is named."""
    if conditions.target is None:
        return None
    # Only here: an audit without a target does without.
    from dflash_audit.diagnosis.vllm_pair import read_vllm_pair

    return read_vllm_pair(run, checkpoint, conditions)


def picked(depth: int) -> list[int]:
    """The features that a target of so many layers hands over where a draft names none.

    Source: vLLM 0.33.0 `model_executor/models/interfaces.py`, `get_eagle3_default_aux_hidden_state_layers`.
    """
    return sorted({layer for layer in (2, depth // 2, depth - 3) if 0 <= layer <= depth})


def _as_written(draft: Draft, key: str) -> str:
    """The key as config.json has it, which a config of the speculators library calls otherwise.

    Where no other of its name stands there, the last part is enough, by which other engines' findings go.
    """
    own, last = "aux_hidden_state_layer_ids", key.rpartition(".")[2]
    if "speculators_config" in draft.raw and own in draft.raw:
        return own
    return last if last == "target_layer_ids" and last not in draft.raw else key
