"""The list of layers to leave dense, in a spelling under which the engines build what is stored."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis.ignore_lists import CONFIG, LIST_KEYS, MODELOPT_FILE, config_at
from dflash_audit.diagnosis.spelling import Spelling, spelled
from dflash_audit.facts import Facts
from dflash_audit.fold import enumerated
from dflash_audit.repairs.edit import Proposal, edit
from dflash_audit.repairs.what_if import with_edits

GROUPS: Final = "config_groups"


def propose(facts: Facts) -> Iterator[Proposal]:
    """The list, with targets that are in its way; from hf_quant_config.json it moves to config.json.

    By parts of names, which hold beside any target; then by whole ones, for an engine that takes no other.
    """
    for whole in (False, True):
        spelling = spelled(facts.checkpoint, facts.runs, facts.conditions, whole)
        if spelling is not None and spelling.place.file == CONFIG:
            yield _in_config(facts, spelling)
        elif spelling is not None and spelling.place.file == MODELOPT_FILE:
            yield _moved(facts, spelling)


def _in_config(facts: Facts, spelling: Spelling) -> Proposal:
    config, place = facts.checkpoint.config, spelling.place
    doubt = " ".join(spelling.depth()) or None
    found = [edit(config, (*place.path, place.key), list(spelling.entries), _why(spelling), doubt)]
    if spelling.all_linear:
        for name in config_at(facts.checkpoint, place)[GROUPS]:
            path = (*place.path, GROUPS, name, "targets")
            why = "The list says which layers are dense, so the targets may be every linear."
            found.append(edit(config, path, ["Linear"], why))
    return tuple(each for each in found if each)


def _moved(facts: Facts, spelling: Spelling) -> Proposal:
    """A `quantization_config` of what the file says, in the flat form that config.json has it in."""
    section = config_at(facts.checkpoint, spelling.place)
    kept = {key: value for key, value in section.items() if key not in LIST_KEYS}
    whole = {"quant_method": "modelopt", **_flat(kept), "ignore": list(spelling.entries)}
    whole = with_list(facts, whole, "ignore")
    why = f"It takes the place of {MODELOPT_FILE}, whose list does not serve. {_why(spelling)}"
    found = edit(facts.checkpoint.config, ("quantization_config",), whole, why)
    return (found,) if found else ()


def with_list(facts: Facts, config: dict[str, Any], key: str) -> dict[str, Any]:
    """A whole `quantization_config` with its list, under `key`, spelled for the engines."""
    bare = edit(facts.checkpoint.config, ("quantization_config",), config, "")
    after = with_edits(facts, (bare,) if bare else ())
    spelling = spelled(after.checkpoint, after.runs, after.conditions)
    return {**config, key: list(spelling.entries)} if spelling else config


def _flat(section: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if value is not None}


def _why(spelling: Spelling) -> str:
    engines = enumerated(spelling.serves)
    does = "build" if len(spelling.serves) > 1 else "builds"
    return f"With this list {engines or 'no engine'} {does} every linear as it is on disk."
