"""A draft and a server that an input describes: a recorded case, edits of its files and tensors, options.

The first layer alone of most drafts, for an audit's time grows with its layers.
"""

from typing import Final

from dflash_audit.engine_run import Conditions
from dflash_audit.sources.checkpoint import CONFIG, Checkpoint, Origin, Tensor
from dflash_audit.sources.reading import read_folder
from dflash_audit.sources.target_files import HF_QUANT_CONFIG, TargetFiles
from dflash_audit.target import Target
from fuzzing.cases import cut, recorded
from fuzzing.draw import Draw
from fuzzing.edits import documents_of, edit, edited_files, edited_tensors
from fuzzing.folder import MemoryFolder

GROUPS: Final = ("cases", "random-vllm")
QUANTIZATIONS: Final = (None, None, None, "fp8", "modelopt_fp4", "w8a8_int8", "\x1b")
BACKENDS: Final = (None, None, "trtllm_mha", "\x1b")
HEADS: Final = (
    Tensor("lm_head.weight", "BF16", (512, 64), "f"),
    Tensor("lm_head.qweight", "I32", (8, 512), "f"),
    Tensor("lm_head.weight_scale", "F32", (), "f"),
)


def conditions(draw: Draw) -> Conditions:
    """A server's, without a target."""
    return Conditions(
        draw.one_of((1, 1, 2, 3, 4)),
        draw.one_of((90, 100, 80, 75)),
        draw.one_of(QUANTIZATIONS),
        draw.one_of(BACKENDS),
    )


def checkpoint(draw: Draw) -> Checkpoint:
    """Raises `Unreadable`, as its reader does."""
    case = draw.one_of((recorded if draw.number() % 8 == 1 else cut)(*GROUPS))
    return read_folder(MemoryFolder(edited_files(case.files, draw), edited_tensors(case.tensors, draw)))


def target(draw: Draw) -> Target:
    """One with an edited config of a draft's: what is looked at of both has the same keys."""
    documents = documents_of(draw.one_of(cut(*GROUPS)).files)
    edit(documents[CONFIG], draw)
    head = HEADS[: draw.number() % 4] or None
    quantized = documents.get(HF_QUANT_CONFIG)
    return Target(TargetFiles(Origin("local", "target"), documents[CONFIG], quantized, head, 0))
