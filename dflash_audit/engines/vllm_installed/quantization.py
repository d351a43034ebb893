"""The quantization config of a record, as the profile of vLLM reads it."""

from dflash_audit.engine_run import Conditions
from dflash_audit.engines.installed.process import Record
from dflash_audit.engines.vllm.draft import Draft
from dflash_audit.engines.vllm.quantization.config import QuantConfig
from dflash_audit.engines.vllm.quantization.settle import read_config, settle
from dflash_audit.engines.vllm.replay import surroundings_of
from dflash_audit.engines.vllm.target import target_facts
from dflash_audit.hf_config.replay import replayed
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.sources.checkpoint import Checkpoint


def quant_config(record: Record, checkpoint: Checkpoint, conditions: Conditions) -> QuantConfig | None:
    """The audit's own reading of the quantization config, for the rules that look at its lists.

    None where the audit reads another method in it than the engine, or refuses it.
    """
    config, model_class = record["config"], record["class"]
    if config is None or model_class is None or record["quantization"] is None:
        return None
    try:
        with replayed("the profile cannot use the config"):
            settled = settle(config, checkpoint.json_files.get("hf_quant_config.json"))
            if settled.method != record["quantization"]:
                return None
            draft = Draft(config, target_facts(checkpoint.config, conditions), tokens=1)
            around = surroundings_of(draft, model_class, checkpoint, conditions)
            return read_config(settled, around, checkpoint.json_files)
    except (Refused, NotModelled):
        return None
