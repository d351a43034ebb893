"""What a draft and its target have to have in common in one server, and the options that make it so.

Source: SGLang 0.5.23 `srt/configs/model_config.py` (`_get_and_verify_dtype`, `_derive_context_length`),
`srt/utils/hf_transformers/common.py` (`get_context_length`) and `srt/speculative/draft_worker_common.py`
(`build_draft_tp_worker`).
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from dflash_audit.dtypes import DENSE_FLOATS
from dflash_audit.engines.sglang.conversions import Config, integer
from dflash_audit.refusal import Refused

if TYPE_CHECKING:
    from dflash_audit.target import Target

LENGTHS: Final = (
    "max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings",
)  # fmt: skip
"""Keys of a context's length, the first that is given counts (`CONTEXT_LENGTH_KEYS`)."""

STRETCHED: Final = ("llama3", "yarn", "longrope")
"""Types whose config tells the length after stretching; their class fills in the one before where it lacks.

Source: transformers 5.19.0 `modeling_rope_utils.py`, `standardize_rope_params`.
"""

MOST: Final = 2**40
"""What is not below it is no context's length, nor a factor of one."""

DTYPE_KEYS: Final = ("dtype", "torch_dtype")
"""Keys of a model's dtype, the older last."""

SERVED: Final = "bfloat16"
"""The dtype that serves both, where they differ."""

CASTS: Final = "DFlashLagunaForCausalLM"
"""The one class that casts the target's features (`DFlashLagunaForCausalLM.project_target_hidden`)."""


def context_length(config: Config) -> int | None:
    """The tokens of a context, None where no key says it."""
    scaling = config.get("rope_scaling") or config.get("rope_parameters")
    factor: Any = 1
    if isinstance(scaling, Mapping):
        kind = scaling.get("rope_type", scaling.get("type"))
        stretched = "original_max_position_embeddings" in scaling or kind in STRETCHED
        factor = 1 if stretched else scaling.get("factor", 1)
    for key in LENGTHS:
        if config.get(key) is not None:
            try:
                length = integer(config[key], key)
            except Refused:
                return None
            if not 0 < length < MOST or not isinstance(factor, int | float):
                return None
            return int(factor * length) if 0 < factor < MOST else None
    return None


def too_short(config: Config, target: "Target") -> tuple[int, int] | None:
    """The draft's context and the target's, where the draft's is the shorter."""
    own, theirs = context_length(config), context_length(target.text)
    return (own, theirs) if own is not None and theirs is not None and own < theirs else None


def apart(config: Config, model_class: str, target: "Target") -> tuple[str, str] | None:
    """The dtypes of the draft and of the target without `--dtype`, where the draft cannot take the other."""
    own = served(config.get("dtype"), config.get("model_type"))
    said = said_dtype(target)
    theirs = None if said is None else served(said, target.model_type)
    if model_class == CASTS or own is None or theirs is None or own == theirs:
        return None
    return own, theirs


def options(config: Config, model_class: str, target: "Target") -> Iterator[str]:
    """The server's options without which the two are not served together."""
    if (lengths := too_short(config, target)) is not None:
        yield f"--context-length {lengths[0]}"
    if apart(config, model_class, target) is not None:
        yield f"--dtype {SERVED}"


def said_dtype(target: "Target") -> Any:
    """What the target's config says its dtype is, as it stands there; None where it says none."""
    said = (part.get(key) for part in (target.text, target.config) for key in DTYPE_KEYS)
    return next((each for each in said if each is not None), None)


def served(said: Any, model_type: Any) -> str | None:
    """The dtype that a model is built in: float16 where its config says float32 or none; None if unknown."""
    named = "float32" if said is None else said
    dtype = named.removeprefix("torch.") if isinstance(named, str) else ""
    if dtype not in DENSE_FLOATS:
        return None
    if dtype != "float32":
        return dtype
    return SERVED if str(model_type).startswith("gemma") else "float16"
