"""The quantization config of a record, as the profiles of SGLang read it."""

from dflash_audit.engine_run import Conditions
from dflash_audit.engines.installed.process import Record
from dflash_audit.quantization.config import QuantConfig, Surroundings
from dflash_audit.quantization.resolve import read_config, settle
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.sources.checkpoint import Checkpoint


def quant_config(record: Record, checkpoint: Checkpoint, conditions: Conditions) -> QuantConfig | None:
    """The audit's own reading of the quantization config, for the rules that look at its lists.

    None where the audit reads another method in it than the engine, or refuses it.
    """
    config = record["config"]
    if config is None or record["quantization"] is None:
        return None
    mapping = {fused: tuple(shards) for fused, shards in record["packed_modules_mapping"].items()}
    try:
        file = checkpoint.json_files.get("hf_quant_config.json")
        settled = settle(config, file, conditions.quantization, conditions.capability)
        if settled.method != record["quantization"]:
            return None
        return read_config(
            settled, Surroundings(mapping, conditions.capability, config), checkpoint.json_files
        )
    except (Refused, NotModelled):
        return None
