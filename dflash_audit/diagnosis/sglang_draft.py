"""A draft as SGLang reads its config, for the rules that look at keys; no rule of its own.

Source: SGLang 0.5.23 `srt/speculative/dflash_utils.py`, `srt/models/dflash.py`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dflash_audit.drops import DSPARK
from dflash_audit.dtypes import DENSE_FLOATS, TORCH
from dflash_audit.engine_run import EngineRun
from dflash_audit.engines.sglang.conversions import Config, integer
from dflash_audit.engines.sglang.dflash_config import is_nemotron_35, nested, text_config
from dflash_audit.engines.sglang.load_weights import VENDOR_NAMES
from dflash_audit.engines.sglang.rope import base_of
from dflash_audit.kinds import named
from dflash_audit.once import once
from dflash_audit.refusal import Refused
from dflash_audit.sources.checkpoint import Checkpoint, Tensor
from dflash_audit.sources.tensors import Tensors, as_tensors
from dflash_audit.tree import MOST_LAYERS

BEAM: Final = "DFlash2BeamDraftModel"
SELECTORS: Final = frozenset(("DFlash2DraftModel", BEAM, "MiniMaxDFlash2DraftModel"))
LAGUNA: Final = "DFlashLagunaForCausalLM"


class Attention(NamedTuple):
    """How one layer of a draft attends."""

    sliding: bool
    causal: bool


class Draft(NamedTuple):
    """A draft: `raw` is its config.json, `config` what the engine's config class makes of it.

    `all_tensors` are as the engine reads them.
    """

    engine: str
    model_class: str
    raw: Config
    config: Config
    all_tensors: tuple[Tensor, ...]

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """The tensors by name, without a leading `model.`."""
        return by_name(as_tensors(self.all_tensors))

    def named(self, pattern: str) -> list[Tensor]:
        """Those whose whole name matches a pattern, which must take any layer if it takes one."""
        found = named(self.all_tensors, re.compile(pattern))
        return [*{tensor.name.removeprefix("model."): tensor for tensor in found}.values()]

    @property
    def inner(self) -> Config:
        """`dflash_config`, empty where there is none."""
        return nested(self.config)

    @property
    def dspark(self) -> bool:
        return self.model_class in DSPARK

    @property
    def nemotron(self) -> bool:
        """Whether the engine takes it for a Nemotron 3.5 draft."""
        try:
            return is_nemotron_35(self.config)
        except Refused:
            return False

    @property
    def fc(self) -> Tensor | None:
        """`fc.weight`, if it is a matrix with a number an element: its columns are all tapped features."""
        names = ("fc.weight", *(vendor for vendor, own in VENDOR_NAMES.items() if own == "fc.weight"))
        found = next((self.tensors[name] for name in names if name in self.tensors), None)
        return found if found and len(found.shape) == 2 and one_an_element(found) else None

    @property
    def made_for(self) -> int | None:
        """The number of tapped layers that `fc` was made for; None where its shape does not tell."""
        hidden = whole(self.config.get("hidden_size"))
        apart = self.config.get("target_hidden_size") not in (None, hidden)
        if self.fc is None or not hidden or apart or self.fc.shape[1] % hidden:
            return None
        return self.fc.shape[1] // hidden

    @property
    def taps(self) -> list[int] | None:
        """The target layers that the config names; None where it names none, or not in whole numbers."""
        return whole_list(self.either("target_layer_ids"))

    @property
    def captured(self) -> tuple[str, list[int] | None]:
        """The key that names the layers which the target is asked for, and their ids; None for none.

        Source: SGLang 0.5.23 `srt/model_executor/model_runner_components/spec_aux_hidden_state.py`,
        `_resolve_dflash_aux_hidden_state`.
        """
        own = whole_list(self.config.get("dspark_target_layer_ids")) if self.dspark else None
        return ("target_layer_ids", self.taps) if own is None else ("dspark_target_layer_ids", own)

    @property
    def rope_base(self) -> float | None:
        """The base of the rotary embedding, None where the engine reads no number."""
        return number(base_of(self.config))

    def either(self, key: str) -> Any:
        """A key that is read in `dflash_config` first, then at the top; a null in the first counts."""
        return self.inner.get(key, self.config.get(key))

    def given(self, key: str) -> bool:
        """Whether config.json itself gives a value at the top, rather than the config's class."""
        return self.raw.get(key) is not None

    @property
    def layers(self) -> int:
        """How many layers the config says, 0 where that is no number that a draft can have."""
        layers = whole(self.config.get("num_hidden_layers")) or 0
        return layers if 0 < layers <= MOST_LAYERS else 0

    def attention(self) -> tuple[Attention, ...]:
        """Each layer's mode, none where `layer_types` is malformed (`_get_dflash_layer_attention_params`)."""
        text = text_config(self.config)
        types = text.get("layer_types", self.config.get("layer_types"))
        if types is None:
            return (Attention(sliding=False, causal=False),) * self.layers
        if not isinstance(types, list) or len(types) < self.layers:
            return ()
        said = text.get("is_causal")
        sliding = [kind == "sliding_attention" for kind in types[: self.layers]]
        return tuple(Attention(slides, slides if said is None else bool(said)) for slides in sliding)


@once
def by_name(tensors: Tensors) -> Mapping[str, Tensor]:
    """Tensors by name, without a leading `model.`; of a name that is there twice the last."""
    return {tensor.name.removeprefix("model."): tensor for tensor in tensors}


def is_sglang(run: EngineRun) -> bool:
    """Whether the engine is one whose reading of a config these rules know."""
    return run.engine.startswith(("sglang-", "sglang@"))


def read_draft(run: EngineRun, checkpoint: Checkpoint) -> Draft | None:
    """The draft as this engine reads it; None for another engine, or where it cannot read it."""
    if not is_sglang(run) or run.config is None or run.model_class is None:
        return None
    return Draft(run.engine, run.model_class, checkpoint.config, run.config, checkpoint.tensors)


def whole(value: Any) -> int | None:
    """A whole number as the engine's `int()` makes it of a JSON value, None where it raises."""
    try:
        return integer(value, "")
    except Refused:
        return None


def number(value: Any) -> float | None:
    """A number as it is, None for anything else and for an integer that no float holds."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        float(value)
    except OverflowError:
        return None
    return value


def whole_list(value: Any) -> list[int] | None:
    """Whole numbers of a list that is not empty, None for anything else."""
    numbers = [whole(item) for item in value] if isinstance(value, list) else []
    found = [number for number in numbers if number is not None]
    return found if found and len(found) == len(numbers) else None


def one_an_element(tensor: Tensor) -> bool:
    """Whether a tensor holds one number an element, rather than packed ones."""
    dtype = TORCH.get(tensor.dtype, "")
    return dtype in DENSE_FLOATS or dtype.startswith("float8_e4m3")
