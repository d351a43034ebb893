"""Names out of a checkpoint can hold anything, and a line stays a line."""


def printable(text: str) -> str:
    """`text` on one line: whatever is not printable is written as an escape."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
