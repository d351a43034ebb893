"""Targets of config groups that name layers otherwise than an engine asks about them."""

from collections.abc import Iterator, Mapping

from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Proposal, edit
from dflash_audit.rules.dead_target_entry import dead_targets, spelled_target

PATH = ("quantization_config", "config_groups")


def propose(facts: Facts) -> Iterator[Proposal]:
    """Beside each such target, in its group, one that names the same layers as the engine does."""
    own = facts.checkpoint.config.get(PATH[0])
    groups = own.get(PATH[1]) if isinstance(own, Mapping) else None
    for run in facts.runs if isinstance(groups, Mapping) else ():
        assert isinstance(groups, Mapping)
        dead = dead_targets(run, facts.checkpoint, facts.conditions)
        found = []
        for name, group in groups.items():
            targets = group.get("targets") if isinstance(group, Mapping) else None
            if not isinstance(targets, list):
                continue
            mine = [target for target in targets if target in dead]
            prefixes = [m.prefix for target in mine for m in dead[target].values() if m.prefix is not None]
            if prefixes:
                why = f"{', '.join(map(repr, mine))} names layers as {run.engine} does not ask about them."
                path = (*PATH, name, "targets")
                found.append(edit(facts.checkpoint.config, path, [*targets, spelled_target(prefixes)], why))
        yield tuple(each for each in found if each)
