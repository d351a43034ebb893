"""Which outputs of a forward pass hold non-finite numbers. Imports no torch."""

from collections.abc import Sequence

from dflash_audit.warmup.result import Stage, WarmUp


def reached_outputs(stages: Sequence[Stage]) -> tuple[str, ...]:
    """The stages with non-finite numbers, of those a server uses: the last hidden states and what follows."""
    first = next((index for index, stage in enumerate(stages) if stage.name == "norm"), len(stages))
    return tuple(stage.name for stage in stages[first:] if not stage.finite)


def outputs(warmup: WarmUp) -> str:
    """The outputs that non-finite numbers reached, as a person lists them."""
    *others, last = warmup.reached
    return f"{', '.join(others)} and {last}" if others else last
