"""Text out of a checkpoint, made safe for a terminal."""


def clean(text: str) -> str:
    """`text` on one line: whatever is not printable is written as an escape."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
