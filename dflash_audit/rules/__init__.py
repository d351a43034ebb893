"""The rules: pure functions from facts to findings, one a file.

A rule's id is its file's name in kebab-case, the file's docstring is its page,
and its `find` the function. A file is imported when its rule is asked for.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType
from typing import Final

from dflash_audit.finding import Finding

ENGINE_RULES: Final = (
    "refused-quantization",
    "refused-build",
    "endless-pattern",
    "refused-load",
    "dropped-tensor",
    "unfilled-parameter",
    "misnamed-tensor",
    "lossy-cast",
    "resized-parameter",
    "dead-ignore-entry",
    "wrong-ignore-entry",
    "server-flag",
    "ignored-tensor",
    "reduced-vocabulary",
)
"""`find(run)`: they look at one engine's replay."""

LAYOUT_RULES: Final = (
    "refused-config",
    "unknown-class",
    "speculators-config",
    "wrong-class",
    "key-against-tensors",
    "tap-count",
    "aux-layer-ids",
    "key-twice",
    "missing-key",
    "broken-number",
    "unread-key",
    "unused-window",
    "anchor-first",
    "block-size",
    "mask-embedding",
    "nemotron-near-miss",
    "unread-packed-mapping",
    "refused-start",
    "absent-head",
)
"""`find(run, checkpoint)`: they look at the checkpoint's own config and tensors beside it."""

SERVER_RULES: Final = (
    "dead-target-entry",
    "unread-ignore-list",
    "inherited-quantization",
    "rank-limit",
    "kernel-limit",
    "head-groups",
    "nvfp4-on-marlin",
    "old-card",
    "wide-activations",
    "tap-order",
    "guessed-taps",
    "mask-token",
    "foreign-vocabulary",
    "config-dtype",
)
"""`find(run, checkpoint, conditions)`: they look at what the server is given as well, its target included."""

TARGET_RULES: Final = (
    "target-class",
    "target-hidden-size",
    "target-layers",
    "target-vocabulary",
    "target-head",
    "target-context",
    "target-dtype",
    "target-rope",
    "rotated-target",
)
"""`find(run, checkpoint, conditions)`: they hold the draft against the target, where one is named."""

CHECKPOINT_RULES: Final = (
    "engines-disagree",
    "undeclared-quantization",
    "nothing-quantized",
    "weight-without-scale",
    "odd-layout",
    "not-a-draft",
)
"""`find(facts, findings)`: they look at all replays, and at what the others found."""

WARMUP_RULES: Final = (
    "warmup-unfilled",
    "warmup-nonfinite",
    "warmup-candidate-range",
    "warmup-died",
    "warmup-weight-drift",
    "warmup-hidden-drift",
)
"""`find(warmup, run)`: they look at the warm-up of one engine's draft, and at its replay."""

RULES: Final = (
    *ENGINE_RULES,
    *LAYOUT_RULES,
    *SERVER_RULES,
    *TARGET_RULES,
    *CHECKPOINT_RULES,
    *WARMUP_RULES,
)
"""Every rule's id."""


def finder(rule: str) -> Callable[..., Iterable[Finding]]:
    """The rule's `find`; which arguments it takes is said by the registry that the rule stands in."""
    find: Callable[..., Iterable[Finding]] = _file(rule).find
    return find


def page(rule: str) -> str:
    """What a rule finds, why it matters, an example, and how to fix it, as Markdown."""
    return f"# {rule}\n\n{(_file(rule).__doc__ or '').strip()}"


def title(rule: str) -> str:
    """What a rule finds, in a sentence."""
    return page(rule).splitlines()[2]


def _file(rule: str) -> ModuleType:
    return import_module(f"{__name__}.{rule.replace('-', '_')}")
