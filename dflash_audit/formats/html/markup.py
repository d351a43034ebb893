"""Markup that is safe by the way it is made: whatever is not markup itself is escaped."""

from html import escape
from typing import Final

from dflash_audit.formats.clean import clean

EMPTY: Final = frozenset(("br", "input", "link", "meta"))


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | None) -> Markup:
    """One element; `class_` and `data_state` stand for `class` and `data-state`.

    Children and values that are not `Markup` are cleaned and escaped. An attribute of None is left out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{markup(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if tag in EMPTY:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{joined(*children)}</{tag}>")


def joined(*children: str) -> Markup:
    return Markup("".join(markup(child) for child in children))


def markup(text: str) -> Markup:
    return text if isinstance(text, Markup) else Markup(escape(clean(text), quote=True))
