"""A draft beside the target that vLLM serves it with, for the rules that compare them; no rule of its own."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dflash_audit.diagnosis.sglang_draft import BEAM, Draft, whole
from dflash_audit.diagnosis.vllm_draft import AS_SGLANG_NAMES_THEM, GEMMA4_DRAFT
from dflash_audit.diagnosis.vllm_features import Features, picked, read_features
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import LIVE
from dflash_audit.engines.vllm import architectures, target_classes
from dflash_audit.loadplan import LoadPlan
from dflash_audit.sources.checkpoint import Checkpoint

if TYPE_CHECKING:
    from dflash_audit.target import Target

LOADED_AS_DSPARK: Final = frozenset(AS_SGLANG_NAMES_THEM[name] for name in architectures.LOADED_AS_DSPARK)
"""Drafts that take the target's tables only where the vocabularies allow it, as `AS_SGLANG_NAMES_THEM`."""

KEEP_NONE: Final = frozenset((BEAM, GEMMA4_DRAFT))
"""Drafts that do not tell vLLM of an embedding or a head of their own, so that the target's take their place.

Source: vLLM 0.33.0 `load_weights` of `model_executor/models/gemma4_dspark.py` and of
`models/beam/nvidia/dflash2.py`, which call no `process_eagle_weight`.
"""

_HANDS_NONE: Final = target_classes.WITHOUT_INNER | target_classes.SILENT


@dataclass(frozen=True, slots=True)
class Pair:
    """A draft that vLLM has built, and its target."""

    features: Features
    target: "Target"
    plan: LoadPlan | None
    known: bool
    """Whether the engine is of the version that `target_classes` was read from."""

    @property
    def draft(self) -> Draft:
        return self.features.draft

    @property
    def loaded_as_dspark(self) -> bool:
        return self.draft.model_class in LOADED_AS_DSPARK

    @property
    def hidden(self) -> int:
        return whole(self.draft.config.get("hidden_size")) or 0

    @property
    def vocabulary(self) -> int | None:
        """The tokens that the draft reads."""
        return whole(self.draft.config.get("vocab_size"))

    @property
    def answers(self) -> int | None:
        """The tokens that it answers with."""
        own = self.draft.config.get("draft_vocab_size")
        return self.vocabulary if own is None else whole(own)

    @property
    def architecture(self) -> str | None:
        """The target's name by which vLLM picks a class; None where it is not one of the tables' names."""
        names = target_classes.EAGLE3 | target_classes.WITHOUT
        return (
            next((name for name in self.target.architectures if name in names), None) if self.known else None
        )

    @property
    def depth(self) -> int | None:
        """The target's layers, None where nothing tells them."""
        name = self.architecture
        hands_over = name in target_classes.EAGLE3 and name not in target_classes.COUNTED_ELSEWHERE
        return self.target.num_hidden_layers if hands_over else None

    @property
    def handed_over(self) -> list[int] | None:
        """The features that the target hands over, in its order; None where nothing tells them."""
        depth, name = self.depth, self.architecture
        if depth is None or name is None or name in _HANDS_NONE or self.stops_at_the_embedding:
            return None
        last = depth - (name in target_classes.LAST_LAYER_LOST)
        first = int(name in target_classes.EMBEDDING_LOST)
        asked = picked(depth) if self.features.asked is None else sorted(set(self.features.asked))
        if 0 in asked and name in target_classes.EMBEDDING_UNKNOWN:
            return None
        return [layer for layer in asked if first <= layer <= last]

    @property
    def stops_at_the_embedding(self) -> bool:
        """Whether the target's class fails for the embedding's output, and is asked for it."""
        return 0 in (self.features.asked or ()) and self.architecture in target_classes.EMBEDDING_STOPS

    @property
    def fits(self) -> bool | None:
        """Whether what the target hands over is as wide as `fc` wants it; None where nothing tells it."""
        handed, width = self.handed_over, self.features.width
        if handed is None:
            return None
        own = self.target.hidden_size
        if own is None or width is None:
            return len(handed) == self.features.built_for
        return len(handed) * own == self.features.built_for * width

    @property
    def brings_embedding(self) -> bool:
        return self._holds("model.embed_tokens.")

    @property
    def brings_head(self) -> bool:
        return self._holds("lm_head.")

    @property
    def own_embedding(self) -> bool:
        """Whether it keeps the embedding that it brings, whatever the target has."""
        return self.brings_embedding and self.draft.model_class not in KEEP_NONE

    @property
    def own_head(self) -> bool:
        """Whether it keeps the head that it brings, whatever the target has."""
        return self.brings_head and self.draft.model_class not in KEEP_NONE

    @property
    def maps_answers(self) -> bool:
        """Whether the checkpoint says which token of the target each of its answers is."""
        return self._holds("draft_id_to_target_id")

    def _holds(self, prefix: str) -> bool:
        filled = () if self.plan is None else self.plan.filled()
        return any(name.startswith(prefix) for name in filled)

    @property
    def borrows_embedding(self) -> bool:
        """Whether the draft embeds with the target's table.

        Source: vLLM 0.33.0 `v1/worker/gpu/spec_decode/eagle/utils.py`, `maybe_share_target_embed`.
        """
        if self.own_embedding:
            return False
        own, theirs = self.vocabulary, self.target.vocab_size
        return not self.loaded_as_dspark or own is None or theirs is None or own <= theirs

    @property
    def borrows_head(self) -> bool:
        """Whether its answers go through the target's head.

        Source: vLLM 0.33.0 `v1/worker/gpu/spec_decode/dflash/utils.py`, `load_dflash_model`.
        """
        if self.own_head:
            return False
        if self.loaded_as_dspark:
            # A draft_vocab_size of 0 is none here.
            answers, theirs = self.answers or self.vocabulary, self.target.vocab_size
            return None in (answers, theirs) or answers == theirs
        return not self.draft.config.get("has_own_lm_head")


def read_vllm_pair(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Pair | None:
    """The pair; None without a target, for another engine, or for a draft that it does not build."""
    features = None if conditions.target is None else read_features(run, checkpoint)
    if features is None or conditions.target is None:
        return None
    known = run.engine not in LIVE or run.version == target_classes.VERSION
    return Pair(features, conditions.target, run.plan, known)
