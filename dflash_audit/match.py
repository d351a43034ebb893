"""How the entries of ignore and target lists match module names.

Each quantization method combines these primitives in its own way.
"""

import re

from dflash_audit.refusal import Refused


def regex(pattern: str, name: str) -> bool:
    """Whether `pattern` matches at the start of `name` (`re.match`).

    Raises:
        Refused: the pattern does not compile; an engine dies on it as Python does.
    """
    try:
        return re.match(pattern, name) is not None
    except (re.error, OverflowError, RecursionError) as error:
        raise Refused(f"the pattern {pattern!r} is not a regular expression: {error}") from error


def exact_or_regex(entry: str, name: str) -> bool:
    """Whether `entry` is `name`, or a `re:` pattern that matches at its start."""
    return regex(entry[3:], name) if entry.startswith("re:") else entry == name


def suffix_or_regex(entry: str, name: str) -> bool:
    """As `exact_or_regex`; a plain entry also matches as a dotted suffix of `name`."""
    return exact_or_regex(entry, name) or (not entry.startswith("re:") and name.endswith("." + entry))
