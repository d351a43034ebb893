"""At which stage vLLM raised: it settles config, class and quantization in one go."""

import traceback
from typing import Final

CLASS: Final = ("resolve_model_cls", "inspect_model_cls", "get_model_architecture")
"""Functions of `ModelRegistry` and beside it: whoever raises below one is looking for a class."""

QUANT_CONFIG: Final = ("get_quant_config", "get_draft_quant_config", "map_draft_quant_config")
"""Functions that read what quantizes a draft; which method it is, the config says.

Source of both: vLLM 0.33.0 `model_executor/model_loader/weight_utils.py`,
`model_executor/models/registry.py` and `utils.py`.
"""


def cause(error: Exception) -> Exception:
    """What was raised first: pydantic, whose classes vLLM's configs are, hides it in an error of its own."""
    told = getattr(error, "errors", None)
    for entry in told() if callable(told) else ():
        hidden = entry.get("ctx", {}).get("error")
        if isinstance(hidden, Exception):
            return cause(hidden)
    return error


def stage_of(error: Exception, stage: str) -> str:
    """The stage of an error that was raised while `stage` was on."""
    functions = {frame.name for frame in traceback.extract_tb(error.__traceback__)}
    if functions.intersection(QUANT_CONFIG):
        return "quant_config"
    return "class" if functions.intersection(CLASS) else stage
