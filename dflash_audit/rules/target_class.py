"""The target is of a class that hands no hidden states over to a draft.

A DFlash or DSpark draft reads the hidden states of its target, and the target's class in the engine has to
hand them over. Not all do. In SGLang DFlash asks for another function than DSpark; vLLM asks for the
interface of its EAGLE-3 drafts, and beside some targets serves no DSpark draft, or only one made for them.

## Why it matters

The server does not start: the class does not have what it is asked for.

## Example

Before, on SGLang 0.5.23 and on vLLM 0.33.0:

    "architectures": ["Glm4MoeForCausalLM"]

After: a target of a class that does, such as

    "architectures": ["Qwen3MoeForCausalLM"]

## How to fix

Serve the pair with an engine, or a version of it, whose class hands them over.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.vllm_draft import DSPARK as DSPARK_IN_VLLM
from dflash_audit.diagnosis.vllm_pair import Pair as VLLMPair
from dflash_audit.diagnosis.vllm_pair import read_vllm_pair
from dflash_audit.diagnosis.with_target import Pair, captures, read_pair, tables_hold
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.sglang.known_architectures import KNOWN
from dflash_audit.engines.sglang.target_classes import DSPARK, WITHOUT_INNER
from dflash_audit.engines.vllm import target_classes as vllm_classes
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding for such a class.

    Source: SGLang 0.5.23 `srt/model_executor/model_runner_components/attention_backend_setup.py`,
    `configure_aux_hidden_state_capture`; vLLM 0.33.0 `v1/worker/gpu/spec_decode/eagle/eagle3_utils.py`,
    `set_eagle3_aux_hidden_state_layers`.
    """
    pair = read_pair(run, checkpoint, conditions)
    if pair is not None and tables_hold(run) and captures(pair) is False:
        yield _finding(run, pair.architecture, _why(pair))
    served = read_vllm_pair(run, checkpoint, conditions)
    why = None if served is None else _why_not_vllm(served)
    if served is not None and why is not None:
        named = next(iter(served.target.architectures), served.target.model_type)
        yield _finding(run, served.architecture or named, why)


def _finding(run: EngineRun, name: str | None, why: str) -> Finding:
    return Finding(
        rule="target-class",
        severity="error",
        engine=run.engine,
        subject="target.architectures",
        message=f"The target is a {name}: {why}, so {run.engine} does not start.",
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


def _why_not_vllm(pair: VLLMPair) -> str | None:
    name, draft = pair.architecture, pair.draft
    wanted = vllm_classes.QWEN3_OMNI_DRAFT
    of_any = draft.model_class in DSPARK_IN_VLLM and wanted not in (draft.config.get("architectures") or ())
    if of_any and _qwen3_omni(pair):
        return f"beside it a DSpark draft has to be a {wanted}"
    if name in vllm_classes.WITHOUT:
        return "its class has no interface for EAGLE-3, by which a draft is given hidden states"
    if name in vllm_classes.WITHOUT_INNER:
        return "its class passes the layers on to a language model that does not take them"
    if name in vllm_classes.SILENT:
        return "its class takes the layers, and hands nothing of them over"
    if name in vllm_classes.WITHOUT_MODEL and pair.loaded_as_dspark:
        return (
            "its language model has no part called model, in which the embedding for such a draft is sought"
        )
    return None


def _qwen3_omni(pair: VLLMPair) -> bool:
    """Whether vLLM takes the target for a Qwen3-Omni, which it does by its names or its model type."""
    by_name = vllm_classes.QWEN3_OMNI.intersection(pair.target.architectures)
    return pair.known and bool(
        by_name or pair.target.config.get("model_type") == vllm_classes.QWEN3_OMNI_TYPE
    )
