"""The engine `vllm@installed`."""

from typing import Final

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.installed.engine import Installed
from dflash_audit.engines.installed.packages import VLLM
from dflash_audit.engines.installed.process import Job
from dflash_audit.engines.installed.reading import Reading
from dflash_audit.engines.vllm import serving
from dflash_audit.engines.vllm.target import target_facts
from dflash_audit.engines.vllm.unserved import no_forward, unknown_class, unserved
from dflash_audit.engines.vllm_installed.own_values import unfilled
from dflash_audit.engines.vllm_installed.quantization import quant_config
from dflash_audit.hf_config.replay import replayed
from dflash_audit.refusal import NotModelled
from dflash_audit.sources.checkpoint import Checkpoint

MOST_LAYERS: Final = 1_000
"""The target that stands beside the draft is gone through layer by layer, and a config may say any number."""


def job(checkpoint: Checkpoint, conditions: Conditions) -> Job:
    """How the draft is served, and beside which target: as the profile assumes it."""
    raw = checkpoint.config
    facts = target_facts(raw, conditions)
    if facts.layers > MOST_LAYERS:
        raise NotModelled(f"a target of more than {MOST_LAYERS:,} layers has no stand-in")
    with replayed("no server can be started for the draft"):
        return {
            "method": serving.method(raw, _named(checkpoint)),
            "tokens": serving.tokens(raw),
            "target": {
                "num_hidden_layers": facts.layers,
                "hidden_size": facts.hidden_size,
                "vocab_size": facts.vocab_size,
            },
        }


def _named(checkpoint: Checkpoint) -> list[str]:
    named = checkpoint.config.get("architectures")
    return [name for name in named if isinstance(name, str)] if isinstance(named, list) else []


def told(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> None:
    """What the engine was asked with, and which family it has none of."""
    raw, named = checkpoint.config, _named(checkpoint)
    run.assumed = target_facts(raw, conditions).assumed
    if run.model_class is not None and run.config is not None:
        lacking = unserved(run.config, run.model_class)
        if lacking is not None:
            run.unserved, run.served_by = lacking
    elif run.refusal is not None and run.refusal.stage == "class":
        run.unserved, run.served_by = unknown_class(raw) or (None, None)
    if run.tree is not None:
        method, tokens = serving.method(raw, named), serving.tokens(raw)
        run.serve = serving.serve_command(method, tokens, checkpoint.origin, conditions)


INSTALLED: Final = Installed(VLLM, job, Reading(quant_config, unfilled, told), no_forward)
