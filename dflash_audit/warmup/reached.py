"""Which outputs of a forward pass hold non-finite numbers."""

from collections.abc import Sequence

from dflash_audit.warmup.result import Stage


def reached_outputs(stages: Sequence[Stage]) -> tuple[str, ...]:
    """The stages with non-finite numbers, of those a server uses: the last hidden states and what follows."""
    first = next((index for index, stage in enumerate(stages) if stage.name == "norm"), len(stages))
    return tuple(stage.name for stage in stages[first:] if not stage.finite)
