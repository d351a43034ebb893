"""How a draft is served: the speculative method, the tokens that are asked for, and the command.

Source: vLLM 0.33.0 `config/speculative.py`.
"""

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

from dflash_audit.engine_run import Conditions
from dflash_audit.engines.vllm import architectures, speculators
from dflash_audit.engines.vllm.fields import nested
from dflash_audit.refusal import Refused
from dflash_audit.sources.checkpoint import Origin

DEFAULT_BLOCK: Final = 8
"""The block size that a server is asked for where the config names none: vLLM itself has no default."""


def method(raw: Mapping[str, Any], named: list[str]) -> str:
    """The speculative method of a draft with this config.json, whose architectures are `named`."""
    if speculators.is_speculators(raw):
        return "dspark" if speculators.algorithm(raw) == "dspark" else "dflash"
    return architectures.method(named)


def tokens(raw: Mapping[str, Any]) -> int:
    """The tokens that a server is asked to propose: a trained block, less an anchor that is no prediction.

    Source: `v1/worker/gpu/spec_decode/dspark/speculator.py` (`sample_from_anchor`), and the default of
    `num_speculative_tokens` for DSpark. Raises `Refused` for a block size that is no number.
    """
    block = nested(raw).get("block_size") or raw.get("block_size") or DEFAULT_BLOCK
    if not isinstance(block, int | float | str):
        raise Refused(f"block_size must be a number, got {block!r}")
    return max(1, int(block) - (0 if _from_anchor(raw) else 1))


def _from_anchor(raw: Mapping[str, Any]) -> bool:
    """Whether a block's first row is a prediction, as in a DSpark draft that does not say otherwise."""
    named = raw.get("architectures")
    names = named if isinstance(named, list) and all(isinstance(name, str) for name in named) else []
    if method(raw, names) != "dspark":
        return False
    return bool(raw.get("sample_from_anchor", not speculators.is_speculators(raw)))


def serve_command(method: str, tokens: int, draft: Origin, given: Conditions) -> tuple[str, ...]:
    """A shell command, an option each, with TARGET to be filled in; under `given` it was replayed.

    A server takes a draft from a path or from the root of a repo: one in a
    repo's folder has to be downloaded, and stands as DRAFT.
    """
    speculative: dict[str, str | int | None] = {"method": method, "model": draft.id}
    if draft.kind != "local":
        if ":" in draft.id:
            speculative["model"] = "DRAFT"
        else:
            speculative["revision"] = draft.commit
    speculative["num_speculative_tokens"] = tokens
    command = ["vllm serve TARGET", f"--speculative-config {shlex.quote(json.dumps(speculative))}"]
    if given.tp > 1:
        command.append(f"--tensor-parallel-size {given.tp}")
    if given.quantization is not None:
        command.append(f"--quantization {shlex.quote(given.quantization)}")
    return tuple(command)
