"""What a repo has and the folder lacks, and an engine would read too: with it the audit does not hold."""

from collections.abc import Iterable
from typing import Final

from dflash_audit.quantization.resolve import CONFIG_FILES
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.sources.weight_files import INDEX, WEIGHTS, engine_files, parse_index

CONFIGS: Final = tuple({end for ends in CONFIG_FILES.values() for end in ends})


def leftovers(checkpoint: Checkpoint, there: Iterable[str]) -> list[str]:
    """The files at the top of a repo that an engine would read beside, or instead of, the checkpoint's."""
    own = [name for name in checkpoint.names if not name.endswith("/")]
    other = sorted({path for path in there if "/" not in path} - {*own})
    settings = [name for name in other if name == INDEX or name.endswith(CONFIGS)]
    weights = [name for name in other if name.endswith(WEIGHTS)]
    weight_map = parse_index(checkpoint.json_files.raw(INDEX), INDEX) if INDEX in own else None
    read = engine_files([*own, *weights], weight_map, checkpoint.id)
    return sorted(
        {*settings, *(name for name in weights if read != engine_files(own, weight_map, checkpoint.id))}
    )
