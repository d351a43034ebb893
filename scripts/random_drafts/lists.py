"""Ignore lists of every method, that name what is dense in one spelling or another."""

from collections.abc import Iterator

from random_drafts.case import Case, Json
from random_drafts.quantizing import linears
from random_drafts.spellings import spelled

KEYS = ("ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers")


def respell(case: Case, name: str) -> None:
    """The ignore list written anew: an entry or more for each linear that is stored dense."""
    del name
    for place, key in lists_of(case):
        place[key] = [entry for module in linears(case) for entry in spelled(case, module)]


def lists_of(case: Case) -> Iterator[tuple[Json, str]]:
    """Each ignore list of the case: the object that holds it, and its key."""
    places = [case.declared, *case.files.values()]
    lists = [place for place in places if isinstance(place, dict)]
    lists += [place["quantization"] for place in lists if isinstance(place.get("quantization"), dict)]
    for place in lists:
        for key in KEYS:
            if isinstance(place.get(key), list):
                yield place, key


def one_spelling(case: Case, name: str) -> None:
    """The module of one tensor added to the ignore list, and stored as it was."""
    module = name.rpartition(".")[0]
    for place in (case.declared, *case.files.values()):
        if isinstance(place, dict):
            for key in KEYS:
                if isinstance(place.get(key), list):
                    place[key] = [*place[key], *spelled(case, module)]
