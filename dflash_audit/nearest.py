"""Words that a user chooses among."""

import difflib
from collections.abc import Iterable


def suggestion(word: str, known: Iterable[str], what: str) -> str:
    """What to say of a word that is none of the known ones: the nearest of them, and all."""
    known = [*known]
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.4)
    meant = f" Did you mean {near[0]}?" if near else ""
    return f"{word} is no {what}.{meant} Known: {', '.join(known)}."
