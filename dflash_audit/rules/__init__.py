"""The rules: pure functions from facts to findings, one a file.

An engine rule looks at one engine's replay; a layout rule at the checkpoint's own
config and tensors beside it; a server rule also at what the server is given; a
checkpoint rule at all replays, and at what the others found.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from dflash_audit.checkpoint import Checkpoint
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.facts import Facts
from dflash_audit.finding import Finding, Skip
from dflash_audit.rules import (
    anchor_first,
    aux_layer_ids,
    block_size,
    config_dtype,
    dead_ignore_entry,
    dead_target_entry,
    dropped_tensor,
    engines_disagree,
    foreign_vocabulary,
    guessed_taps,
    ignored_tensor,
    inherited_quantization,
    kernel_limit,
    key_against_tensors,
    key_twice,
    lossy_cast,
    mask_embedding,
    mask_token,
    misnamed_tensor,
    nemotron_near_miss,
    not_a_draft,
    nothing_quantized,
    nvfp4_on_marlin,
    odd_layout,
    old_card,
    rank_limit,
    refused_build,
    refused_config,
    refused_load,
    refused_quantization,
    resized_parameter,
    server_flag,
    speculators_config,
    spelled,
    tap_count,
    tap_order,
    undeclared_quantization,
    unfilled_parameter,
    unknown_class,
    unread_ignore_list,
    unread_key,
    unread_packed_mapping,
    unused_window,
    weight_without_scale,
    wide_activations,
    wrong_class,
    wrong_ignore_entry,
)

ENGINE_RULES: Final[Mapping[str, Callable[[EngineRun], Iterable[Finding]]]] = {
    "refused-config": refused_config.find,
    "unknown-class": unknown_class.find,
    "refused-quantization": refused_quantization.find,
    "refused-build": refused_build.find,
    "refused-load": refused_load.find,
    "dropped-tensor": dropped_tensor.find,
    "unfilled-parameter": unfilled_parameter.find,
    "misnamed-tensor": misnamed_tensor.find,
    "lossy-cast": lossy_cast.find,
    "resized-parameter": resized_parameter.find,
    "dead-ignore-entry": dead_ignore_entry.find,
    "wrong-ignore-entry": wrong_ignore_entry.find,
    "server-flag": server_flag.find,
    "ignored-tensor": ignored_tensor.find,
}

LAYOUT_RULES: Final[Mapping[str, Callable[[EngineRun, Checkpoint], Iterable[Finding]]]] = {
    "speculators-config": speculators_config.find,
    "wrong-class": wrong_class.find,
    "key-against-tensors": key_against_tensors.find,
    "tap-count": tap_count.find,
    "tap-order": tap_order.find,
    "guessed-taps": guessed_taps.find,
    "aux-layer-ids": aux_layer_ids.find,
    "key-twice": key_twice.find,
    "unread-key": unread_key.find,
    "unused-window": unused_window.find,
    "anchor-first": anchor_first.find,
    "block-size": block_size.find,
    "mask-token": mask_token.find,
    "mask-embedding": mask_embedding.find,
    "foreign-vocabulary": foreign_vocabulary.find,
    "config-dtype": config_dtype.find,
    "nemotron-near-miss": nemotron_near_miss.find,
    "unread-packed-mapping": unread_packed_mapping.find,
}

SERVER_RULES: Final[Mapping[str, Callable[[EngineRun, Checkpoint, Conditions], Iterable[Finding]]]] = {
    "dead-target-entry": dead_target_entry.find,
    "unread-ignore-list": unread_ignore_list.find,
    "inherited-quantization": inherited_quantization.find,
    "rank-limit": rank_limit.find,
    "kernel-limit": kernel_limit.find,
    "nvfp4-on-marlin": nvfp4_on_marlin.find,
    "old-card": old_card.find,
    "wide-activations": wide_activations.find,
}

CHECKPOINT_RULES: Final[Mapping[str, Callable[[Facts, Sequence[Finding]], Iterable[Finding]]]] = {
    "engines-disagree": engines_disagree.find,
    "undeclared-quantization": undeclared_quantization.find,
    "nothing-quantized": nothing_quantized.find,
    "weight-without-scale": weight_without_scale.find,
    "odd-layout": odd_layout.find,
    "not-a-draft": not_a_draft.find,
}


RULES: Final = (*ENGINE_RULES, *LAYOUT_RULES, *SERVER_RULES, *CHECKPOINT_RULES)
"""Every rule's id."""

DEFAULTS: Final = Conditions()


def page(rule: str) -> str:
    """What a rule finds, why it matters, an example, and how to fix it, as Markdown."""
    find = {**ENGINE_RULES, **LAYOUT_RULES, **SERVER_RULES, **CHECKPOINT_RULES}[rule]
    text = sys.modules[find.__module__].__doc__ or ""
    return f"# {rule}\n\n{text.strip()}"


def title(rule: str) -> str:
    """What a rule finds, in a sentence."""
    return page(rule).splitlines()[2]


def judge(facts: Facts, conditions: Conditions = DEFAULTS) -> tuple[list[Finding], list[Skip]]:
    """Every rule on the facts: what they find, and what they could not look at.

    `conditions` are those under which the engines were replayed.
    """

    def on(run: EngineRun) -> Iterator[Finding]:
        return _engine_findings(run, facts.checkpoint, conditions)

    findings = [finding for run in facts.runs for finding in on(run)]
    findings = spelled.with_spelling(findings, facts, conditions, on)
    across = [finding for find in CHECKPOINT_RULES.values() for finding in find(facts, findings)]
    skips = [
        Skip(rule, f"{run.engine}: {run.skipped}")
        for run in facts.runs
        if run.skipped
        for rule in (*ENGINE_RULES, *LAYOUT_RULES, *SERVER_RULES)
    ]
    return findings + across, skips


def _engine_findings(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    if run.skipped is not None:
        return
    for find in ENGINE_RULES.values():
        yield from find(run)
    for find_in_layout in LAYOUT_RULES.values():
        yield from find_in_layout(run, checkpoint)
    for find_on_server in SERVER_RULES.values():
        yield from find_on_server(run, checkpoint, conditions)
