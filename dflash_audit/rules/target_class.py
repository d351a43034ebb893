"""The target is of a class that hands no hidden states over to a draft.

A DFlash or DSpark draft reads the hidden states of its target, and the target's class in the engine has to
hand them over. Not all do, and DFlash asks for another function than DSpark.

## Why it matters

SGLang does not start: the class implements neither of the two.

## Example

Before, on SGLang 0.5.23:

    "architectures": ["Glm4MoeForCausalLM"]

After: a target of a class that does, such as

    "architectures": ["Qwen3MoeForCausalLM"]

## How to fix

Serve the pair with an engine, or a version of it, whose class hands them over.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.with_target import Pair, captures, read_pair, tables_hold
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.sglang.known_architectures import KNOWN
from dflash_audit.engines.sglang.target_classes import DSPARK, WITHOUT_INNER
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding for such a class.

    Source: SGLang 0.5.23 `srt/model_executor/model_runner_components/attention_backend_setup.py`,
    `configure_aux_hidden_state_capture`.
    """
    pair = read_pair(run, checkpoint, conditions)
    if pair is None or not tables_hold(run) or captures(pair) is not False:
        return
    name = pair.architecture
    yield Finding(
        rule="target-class",
        severity="error",
        engine=run.engine,
        subject="target.architectures",
        message=f"The target is a {name}: {_why(pair)}, so {run.engine} does not start.",
        hint="Serve the pair with an engine, or a version of it, whose class of the target hands them over.",
        subjects=("target.architectures",),
    )


def _why(pair: Pair) -> str:
    name = pair.architecture
    if name in WITHOUT_INNER:
        return "its class passes the layers' ids on to a language model that does not take them"
    if name in DSPARK:
        return "its class hands hidden states over to a DSpark draft, and not to this DFlash draft"
    if name not in KNOWN:
        return "this engine has no class of its own for it, and the one that it falls back to hands none over"
    return "its class hands no hidden states over to a draft"
