"""The command that serves a draft.

Source: SGLang 0.5.23 `srt/arg_groups/fields/spec.py`. A DFlash server's block
size is the whole verify window, a DSpark server's the tokens proposed in it.
"""

import shlex
from collections.abc import Iterable, Iterator

from dflash_audit.engine_run import Conditions, FlagNeeded
from dflash_audit.engines.sglang.draft import BuiltDraft
from dflash_audit.sources.checkpoint import Origin


def serve_command(
    built: BuiltDraft, draft: Origin, flags: Iterable[FlagNeeded], given: Conditions
) -> tuple[str, ...]:
    """A shell command, an option each; under `given` it was replayed, whose target stands for TARGET.

    A server takes a draft from a path or from the root of a repo: one in a
    repo's folder has to be downloaded, and stands as DRAFT.
    """
    algorithm = "DSPARK" if built.draft_class.dspark else "DFLASH"
    return (
        *_target(given),
        f"--speculative-algorithm {algorithm}",
        *_source(draft),
        f"--speculative-{algorithm.lower()}-block-size {built.draft.parsed.block_size}",
        *(needed.flag for needed in flags),
        *_for_both(built, given),
        *_given(given),
    )


def _target(given: Conditions) -> Iterator[str]:
    """The target, which a server too takes from a path or from the root of a repo."""
    target = None if given.target is None else given.target.origin
    named = target is not None and (target.kind == "local" or ":" not in target.id)
    path = shlex.quote(target.id) if target is not None and named else "TARGET"
    yield f"python -m sglang.launch_server --model-path {path}"
    if target is not None and named and target.commit is not None:
        yield f"--revision {target.commit}"


def _for_both(built: BuiltDraft, given: Conditions) -> Iterator[str]:
    if given.target is not None:
        # Only here: a replay without a target does without.
        from dflash_audit.engines.sglang.two_models import options

        yield from options(built.draft.config, built.draft_class.name, given.target)


def _source(draft: Origin) -> tuple[str, ...]:
    if draft.kind == "local":
        return (f"--speculative-draft-model-path {shlex.quote(draft.id)}",)
    if ":" in draft.id:
        return ("--speculative-draft-model-path DRAFT",)
    return (
        f"--speculative-draft-model-path {shlex.quote(draft.id)}",
        f"--speculative-draft-model-revision {draft.commit}",
    )


def _given(conditions: Conditions) -> Iterator[str]:
    if conditions.tp > 1:
        yield f"--tp {conditions.tp}"
    if conditions.quantization is not None:
        yield f"--quantization {shlex.quote(conditions.quantization)}"
    if conditions.attention_backend is not None:
        yield f"--speculative-draft-attention-backend {shlex.quote(conditions.attention_backend)}"
