"""What a user chooses of a warm-up. Imports no torch."""

from typing import Final, NamedTuple

DTYPES: Final = ("bfloat16", "float16", "float32")
BACKENDS: Final = ("auto", "reference", "sglang")


class Options(NamedTuple):
    """How to warm up.

    `device` is auto, cpu, cuda or cuda:N; `backend` and `dtype` are words of the
    lists above. So many `blocks` are drafted after `context` tokens, with numbers
    drawn from `seed`. `timeout` are the seconds that one engine's child may take;
    with `provoke` it runs once more with an id out of range. `against` is the path or
    repo of the draft that this one was made from, to be held against.
    """

    device: str = "auto"
    dtype: str = "bfloat16"
    backend: str = "auto"
    blocks: int = 2
    context: int = 64
    seed: int = 0
    timeout: int = 600
    provoke: bool = False
    against: str | None = None
