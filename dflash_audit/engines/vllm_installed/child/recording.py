"""One draft's record: what vLLM built, loaded, dropped and refused."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from vllm.model_executor.model_loader.weight_utils import default_weight_loader
from vllm.model_executor.models.utils import AutoWeightsLoader

from dflash_audit.engines.installed.child.attempt import attempt
from dflash_audit.engines.installed.child.built import Record
from dflash_audit.engines.installed.child.watch import Watch
from dflash_audit.engines.vllm_installed.child.draft import Draft


def record(folder: str, method: str, tokens: int, target: Mapping[str, int]) -> Record:
    """What the installed vLLM does with the draft of a folder, as `attempt` records it."""
    watch = Watch(default_weight_loader)
    with _followed(watch):
        return attempt(Draft(folder, method, tokens, target), watch)


@contextmanager
def _followed(watch: Watch) -> Iterator[None]:
    """Have `watch` see what passes through vLLM's loader of whole modules, the outermost one.

    A class reads all tensors before it hands them to that loader, which refuses what it has no place for.
    """
    load: Callable[..., Any] = AutoWeightsLoader.load_weights
    depth = 0

    def load_weights(self: Any, weights: Iterable[tuple[str, Any]], **more: Any) -> Any:
        nonlocal depth
        depth += 1
        try:
            return load(self, watch.passing(weights) if depth == 1 else weights, **more)
        finally:
            depth -= 1

    AutoWeightsLoader.load_weights = load_weights
    try:
        yield
    finally:
        AutoWeightsLoader.load_weights = load
