"""Which draft to run, and the block that it drafts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LiveDraft:
    """A draft to run: the folder with its files, the server's options for it, and its block.

    `rows` are the anchor and the masks of a block; those from `first_slot` on propose.
    """

    folder: str
    rows: int
    first_slot: int = 1
    quantization: str | None = None
    attention_backend: str | None = None
