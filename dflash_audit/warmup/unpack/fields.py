"""Numbers packed into words of 32 bits, the first in the lowest bits."""

import torch


def fields(words: torch.Tensor, bits: int) -> torch.Tensor:
    """[rows, words] of int32, or bytes -> [rows, all their fields] of uint8; `bits` is 4 or 8.

    The bytes of a word are in the order of little-endian machines, as all that torch runs on.
    """
    by_byte = words.contiguous().view(torch.uint8)
    if bits == 8:
        return by_byte
    return torch.stack((by_byte & 15, by_byte >> 4), dim=-1).flatten(1)
