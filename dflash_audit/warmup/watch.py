"""Looks at what comes out of every module and stage of a forward pass."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from dflash_audit.warmup.result import Stage


@dataclass(slots=True)
class Watch:
    """Follows one forward pass.

    `tell` is called with a stage's name as it begins, so that whoever waits knows
    where a pass died. With `mend` a module's non-finite outputs are noted in
    `sources`, module -> the stage it was first in, and go on as zeros, so that each module that makes
    some is seen, not only the first; without it they go on as they are. With `keep` the
    last output of each stage stays in `kept`.
    """

    tell: Callable[[str], None] = lambda stage: None
    mend: bool = False
    keep: bool = False
    kept: dict[str, torch.Tensor] = field(default_factory=dict)
    stages: list[Stage] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    _at: str = ""
    _outputs: list[torch.Tensor] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """One stage: its time, and the numbers that `out` was shown in it."""
        self.tell(name)
        self._at, self._outputs = name, []
        begin = time.perf_counter()
        yield
        shown = [_summary(output) for output in self._outputs]
        largest = [value for _, _, value in shown if value is not None]
        total = sum(numbers for numbers, _, _ in shown)
        bad = sum(nonfinite for _, nonfinite, _ in shown)
        # The summaries wait for the device, so the time holds its work.
        seconds = time.perf_counter() - begin
        self.stages.append(Stage(name, seconds, bad / total if total else 0.0, max(largest, default=None)))

    def module(self, name: str, output: torch.Tensor) -> torch.Tensor:
        """What module `name` gave; to be used in place of it."""
        if not self.mend or not output.is_floating_point():
            return output
        finite = torch.isfinite(output)
        if bool(finite.all()):
            return output
        self.sources.setdefault(name, self._at)
        return torch.where(finite, output, torch.zeros_like(output))

    def out(self, output: torch.Tensor) -> torch.Tensor:
        """An output of the stage that is on."""
        self._outputs.append(output)
        if self.keep:
            self.kept[self._at] = output
        return output


def _summary(output: torch.Tensor) -> tuple[int, int, float | None]:
    """Numbers, non-finite ones among them, the greatest magnitude of the others."""
    if not output.numel():
        return 0, 0, None
    numbers = output.detach().float()
    finite = torch.isfinite(numbers)
    bad = numbers.numel() - int(finite.sum())
    if bad == numbers.numel():
        return numbers.numel(), bad, None
    return numbers.numel(), bad, float(torch.where(finite, numbers, 0.0).abs().max())
