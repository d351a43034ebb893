"""One draft's record: what vLLM built, loaded, dropped and refused."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, Final

from vllm.model_executor.model_loader.weight_utils import default_weight_loader
from vllm.model_executor.models.utils import AutoWeightsLoader

from dflash_audit.engines.installed.child.attempt import attempt
from dflash_audit.engines.installed.child.built import Record
from dflash_audit.engines.installed.child.watch import Watch
from dflash_audit.engines.vllm_installed.child.draft import Draft

MIXER: Final = ("xpress_head.mix.L", "model.xpress_head.mix_L")
"""The tensor that XPress keeps back, and the parameter into which it folds it itself.

Source: vLLM 0.33.0 `model_executor/models/qwen3_xpress.py`.
"""


def record(folder: str, method: str, tokens: int, target: Mapping[str, int]) -> Record:
    """What the installed vLLM does with the draft of a folder, as `attempt` records it."""
    watch = Watch(default_weight_loader)
    with ExitStack() as stack:
        loader = _passed_by(watch, AutoWeightsLoader.load_weights)
        stack.enter_context(_in_place_of(AutoWeightsLoader, "load_weights", loader))
        head = _xpress_head()
        if head is not None:
            fold = watch.step(*MIXER, head.fold_from_raw_)
            stack.enter_context(_in_place_of(head, "fold_from_raw_", fold))
        return attempt(Draft(folder, method, tokens, target), watch)


def _passed_by(watch: Watch, load: Callable[..., Any]) -> Callable[..., Any]:
    """vLLM's loader of whole modules, the outermost one seen by `watch`.

    A class reads all tensors before it hands them to that loader, which refuses what it has no place for.
    """
    depth = 0

    def load_weights(self: Any, weights: Iterable[tuple[str, Any]], **more: Any) -> Any:
        nonlocal depth
        depth += 1
        try:
            return load(self, watch.passing(weights) if depth == 1 else weights, **more)
        finally:
            depth -= 1

    return load_weights


def _xpress_head() -> Any:
    """The class of XPress's head, None in a version without XPress."""
    try:
        return import_module("vllm.model_executor.models.qwen3_xpress").XPressRefinerHead
    except ImportError:
        return None


@contextmanager
def _in_place_of(owner: Any, name: str, other: Any) -> Iterator[None]:
    own = getattr(owner, name)
    setattr(owner, name, other)
    try:
        yield
    finally:
        setattr(owner, name, own)
