"""The config object that Hugging Face's classes, and SGLang's own, make of a `config.json`."""

from dflash_audit.hf_config.read import as_engine_sees, reads_params_json
from dflash_audit.hf_config.text_config import decoder_part

__all__ = ["as_engine_sees", "decoder_part", "reads_params_json"]
