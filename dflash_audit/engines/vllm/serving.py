"""The command that serves a draft.

Source: vLLM 0.33.0 `config/speculative.py`.
"""

import json
import shlex

from dflash_audit.engine_run import Conditions
from dflash_audit.sources.checkpoint import Origin


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
