"""The rules: pure functions from facts to findings, one a file.

An engine rule looks at one engine's replay; a checkpoint rule at all of them,
and at what the engine rules found.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from dflash_audit.engine_run import EngineRun
from dflash_audit.facts import Facts
from dflash_audit.finding import Finding, Skip
from dflash_audit.rules import (
    dead_ignore_entry,
    dropped_tensor,
    engines_disagree,
    ignored_tensor,
    lossy_cast,
    refused_build,
    refused_config,
    refused_load,
    refused_quantization,
    resized_parameter,
    server_flag,
    unfilled_parameter,
    unknown_class,
)

ENGINE_RULES: Final[Mapping[str, Callable[[EngineRun], Iterable[Finding]]]] = {
    "refused-config": refused_config.find,
    "unknown-class": unknown_class.find,
    "refused-quantization": refused_quantization.find,
    "refused-build": refused_build.find,
    "refused-load": refused_load.find,
    "dropped-tensor": dropped_tensor.find,
    "unfilled-parameter": unfilled_parameter.find,
    "lossy-cast": lossy_cast.find,
    "resized-parameter": resized_parameter.find,
    "dead-ignore-entry": dead_ignore_entry.find,
    "server-flag": server_flag.find,
    "ignored-tensor": ignored_tensor.find,
}

CHECKPOINT_RULES: Final[Mapping[str, Callable[[Facts, Sequence[Finding]], Iterable[Finding]]]] = {
    "engines-disagree": engines_disagree.find,
}


RULES: Final = (*ENGINE_RULES, *CHECKPOINT_RULES)
"""Every rule's id."""


def page(rule: str) -> str:
    """What a rule finds, why it matters, an example, and how to fix it, as Markdown."""
    find = ENGINE_RULES.get(rule) or CHECKPOINT_RULES[rule]
    text = sys.modules[find.__module__].__doc__ or ""
    return f"# {rule}\n\n{text.strip()}"


def title(rule: str) -> str:
    """What a rule finds, in a sentence."""
    return page(rule).splitlines()[2]


def judge(facts: Facts) -> tuple[list[Finding], list[Skip]]:
    """Every rule on the facts: what they find, and what they could not look at."""
    findings = [finding for run in facts.runs for finding in _engine_findings(run)]
    across = [finding for find in CHECKPOINT_RULES.values() for finding in find(facts, findings)]
    skips = [
        Skip(rule, f"{run.engine}: {run.skipped}")
        for run in facts.runs
        if run.skipped
        for rule in ENGINE_RULES
    ]
    return findings + across, skips


def _engine_findings(run: EngineRun) -> Iterator[Finding]:
    if run.skipped is None:
        for find in ENGINE_RULES.values():
            yield from find(run)
