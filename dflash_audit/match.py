"""How the entries of ignore and target lists match module names.

Each quantization method combines these primitives in its own way.
"""

from dflash_audit.bounded_match import How, NotAPattern, Runaway, Spent, bounded_match
from dflash_audit.refusal import Endless, NoPattern, NotModelled


def regex(pattern: str, name: str, how: How = "match") -> bool:
    """Whether `pattern` matches at the start of `name` (`re.match`), or as another function of `re` does.

    Raises:
        NoPattern: it does not compile; an engine dies on it as Python does.
        Endless: the match takes too long, as it does in an engine.
        NotModelled: all matches together take too long for an audit.
    """
    try:
        return bounded_match(pattern, name, how)
    except NotAPattern as error:
        told = f"the pattern {pattern!r} is not a regular expression: {error}"
        raise NoPattern(told, error.syntax) from error
    except Runaway:
        raise Endless(pattern, name) from None
    except Spent:
        raise NotModelled("the patterns of the quantization config take too long to match") from None


def exact_or_regex(entry: str, name: str) -> bool:
    """Whether `entry` is `name`, or a `re:` pattern that matches at its start."""
    return regex(entry[3:], name) if entry.startswith("re:") else entry == name


def suffix_or_regex(entry: str, name: str) -> bool:
    """As `exact_or_regex`; a plain entry also matches as a dotted suffix of `name`."""
    return exact_or_regex(entry, name) or (not entry.startswith("re:") and name.endswith("." + entry))
