"""The size of a draft block is missing, or cannot be served.

A DFlash draft fills a block at once: the anchor and `block_size` - 1 tokens after it. A DSpark draft drafts
`block_size` tokens after it. Neither can be read off the tensors, but for a LiLiCorr head.

## Why it matters

Without the key the server drafts in blocks of 16, or of 7 tokens for DSpark. A draft that was trained on
another size sees blocks that it never saw, its convolutions run with another period, and it accepts less. A
DFlash block of 1 holds the anchor and nothing to draft.

## Example

Before:

    "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]}

After:

    "dflash_config": {"block_size": 8, "mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]}

## How to fix

Set `block_size` to the size that the draft was trained on. A server's `--speculative-num-draft-tokens`
overrides it: the same number for DFlash, one more for DSpark.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import Draft, read_draft, whole
from dflash_audit.engine_run import EngineRun
from dflash_audit.engines.sglang.dflash_config import DEFAULT_BLOCK_SIZE
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

DEFAULT_GAMMA = 7
"""Source: SGLang 0.5.23 `dspark_config.py`, `DEFAULT_DSPARK_GAMMA`."""


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding for a block that is missing, empty, or shorter than the convolutions reach."""
    draft = read_draft(run, checkpoint)
    if draft is None:
        return
    said = _missing(draft) or _empty(draft) or _short(draft)
    if said is not None:
        message, hint = said
        yield Finding("block-size", "warning", run.engine, "block_size", message, hint, ("block_size",))


def _size(draft: Draft) -> object:
    own = draft.config.get("dspark_block_size") if draft.dspark else None
    return draft.either("block_size") if own is None else own


def _missing(draft: Draft) -> tuple[str, str] | None:
    # A value that a null in dflash_config hides is `key-twice`.
    if _size(draft) is not None or draft.given("block_size"):
        return None
    anchored = f"{DEFAULT_BLOCK_SIZE}, the anchor included"
    default = f"{DEFAULT_GAMMA} drafted tokens" if draft.dspark else anchored
    return (
        f"config.json gives no block_size: {draft.engine} drafts in blocks of {default}.",
        "Set block_size to the size that the draft was trained on.",
    )


def _empty(draft: Draft) -> tuple[str, str] | None:
    if draft.dspark or whole(_size(draft)) != 1:
        return None
    return (
        f"block_size is 1: the block holds its anchor alone, and {draft.engine} has nothing to draft.",
        "Set block_size to the size that the draft was trained on, the anchor included.",
    )


def _short(draft: Draft) -> tuple[str, str] | None:
    taps, size = whole(draft.inner.get("conv_kernel_size")), whole(_size(draft))
    if taps is None or size is None or not 0 < size < taps:
        return None
    return (
        f"conv_kernel_size {taps} is more than block_size {size}: a convolution sees its own block alone,"
        f" so {draft.engine} never uses the last {taps - size} taps.",
        "Set block_size to the size that the draft was trained on.",
    )
