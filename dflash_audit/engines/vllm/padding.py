"""How long vLLM makes a table of tokens."""

from typing import Final

VOCABULARY_PADDING: Final = 64
"""Source: vLLM 0.33.0 `vocab_parallel_embedding.py`, `DEFAULT_VOCAB_PADDING_SIZE`."""


def padded(tokens: int) -> int:
    """The rows of a table of so many tokens; those beyond them are zeros."""
    return -(-tokens // VOCABULARY_PADDING) * VOCABULARY_PADDING
