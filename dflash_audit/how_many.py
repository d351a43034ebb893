"""A number of things in words: one of them, or more."""


def how_many(number: int, thing: str) -> str:
    """`1 layer`, `2 layers`, `1,024 layers`; of things that take an s."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
