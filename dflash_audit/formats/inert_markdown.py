"""Text as Markdown that stays text: no name in it becomes markup, a link, a mention or a table's edge."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from dflash_audit.formats.clean import clean

PLAIN: Final = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|[0-9][0-9,]*(?:\.[0-9]+)?")
"""A word or a number, in which nothing can be markup; every other word is shown as code."""

TOKEN: Final = re.compile(r"(?:\[[^\[\]]{0,200}\]|\S)+")
"""What stands between two spaces; a list, such as a shape, counts as one word."""

TAIL: Final = re.compile(r"[.,:;!?)]*$")
LIST_MARK: Final = re.compile(r"^([0-9]+)([.)])")


@dataclass(frozen=True, slots=True)
class Word:
    """What stands between two spaces; `lead` and `tail` are the sentence's punctuation around it."""

    lead: str
    core: str
    tail: str

    @property
    def plain(self) -> bool:
        return PLAIN.fullmatch(self.core) is not None

    def __str__(self) -> str:
        return f"{self.lead}{self.core if self.plain else code(self.core)}{self.tail}"


def code(text: str) -> str:
    """`text` as a code span, in which Markdown reads nothing, fenced by more backticks than it holds."""
    shown = clean(text) or "(no name)"
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if "`" in (shown[0], shown[-1]) or (shown[0] == shown[-1] == " ") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def prose(text: str) -> str:
    """A sentence: its plain words as they are, names and everything else in it as code spans."""
    sentence = " ".join(map(str, _joined(map(_word, TOKEN.findall(clean(text))))))
    return LIST_MARK.sub(r"\1\\\2", sentence)


def block(lines: Iterable[str], language: str) -> str:
    """Lines to copy, as a fenced block."""
    text = "\n".join(lines)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def _word(token: str) -> Word:
    """A token without its punctuation; brackets that belong to the name stay with it."""
    lead = "(" if token.startswith("(") and ")" not in token[1:-1] else ""
    rest = token.removeprefix(lead)
    match = TAIL.search(rest)
    tail = match[0] if match else ""
    if "(" in rest and ")" in tail:
        tail = tail[tail.rindex(")") + 1 :]
    core = rest.removesuffix(tail)
    return Word(lead, core, tail) if core else Word("", token, "")


def _joined(words: Iterable[Word]) -> Iterator[Word]:
    """The words, neighbours that are shown as code as one."""
    last: Word | None = None
    for word in words:
        if last is None:
            last = word
        elif not (last.plain or word.plain or last.tail or word.lead):
            last = replace(last, core=f"{last.core} {word.core}", tail=word.tail)
        else:
            yield last
            last = word
    if last is not None:
        yield last
