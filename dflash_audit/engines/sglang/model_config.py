"""What SGLang's `ModelConfig` does to a draft's config before the class is chosen.

Source: SGLang 0.5.23 `srt/configs/model_config.py` (`ModelConfig.__init__` and
what it calls, without the settling of the quantization) and
`srt/utils/hf_transformers/common.py` (`get_context_length`).
"""

import copy
from collections.abc import Mapping
from typing import Any, Final

from dflash_audit.hf_config.config_object import Attributes
from dflash_audit.hf_config.replay import as_table, replayed
from dflash_audit.hf_config.text_config import first_architecture, language_part
from dflash_audit.refusal import NotModelled, Refused

CONTEXT_LENGTH: Final = (
    "max_sequence_length",
    "seq_length",
    "max_seq_len",
    "model_max_length",
    "max_position_embeddings",
)
"""Keys of a model's longest sequence; the first that is given counts."""

SPECIAL: Final = frozenset({
    "BailingMoeForCausalLM", "BailingMoeForCausalLMNextN", "BailingMoeV2ForCausalLM",
    "BailingMoeV2_5ForCausalLM", "BailingMoeV3ForCausalLM", "BailingMoeV3VLForConditionalGeneration",
    "BeamForCausalLM", "DSparkMiniMaxDraftModel", "DeepseekV2ForCausalLM", "DeepseekV32ForCausalLM",
    "DeepseekV3ForCausalLM", "DeepseekV3ForCausalLMNextN", "DeepseekV4ForCausalLM",
    "DeepseekV4ForCausalLMDSpark", "DeepseekV4ForCausalLMNextN", "DeepseekVL2ForCausalLM",
    "DiffusionGemmaForBlockDiffusion", "Dots3NoteForCausalLM", "Dots3NoteForCausalLMNextN",
    "DotsVLMForCausalLM", "Eagle3DeepseekV2ForCausalLM", "EmbeddingGemma2Model", "Ernie4_5_MoeForCausalLM",
    "ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM", "FalconMambaForCausalLM", "Gemma4ForCausalLM",
    "Gemma4ForConditionalGeneration", "Gemma4UnifiedForConditionalGeneration", "GigaChat35ForCausalLM",
    "GigaChat35ForCausalLMNextN", "Glm4MoeForCausalLM", "Glm4MoeForCausalLMNextN", "Glm4MoeLiteForCausalLM",
    "Glm4MoeLiteForCausalLMNextN", "Glm5NextForConditionalGeneration",
    "Glm5NextForConditionalGenerationNextN", "GlmImageForConditionalGeneration", "GlmMoeDsaForCausalLM",
    "GlmMoeDsaForCausalLMNextN", "GlmOcrForConditionalGeneration", "GptOssForCausalLM",
    "GraniteMoeSWAForCausalLM", "GraniteSWAForCausalLM", "HYV3ForCausalLM", "HYV4ForCausalLM",
    "HYV4ForCausalLMNextN", "IQuestLoopCoderForCausalLM", "IQuestQ1ForCausalLM", "IQuestQ1MTP",
    "InklingForConditionalGeneration", "InklingForConditionalGenerationMTP",
    "InternS2MobiusForConditionalGeneration", "InternS2PreviewForConditionalGeneration",
    "KimiK25ForConditionalGeneration", "KimiK3ForConditionalGeneration", "KimiK3LinearForCausalLM",
    "KimiLinearForCausalLM", "KimiVLForConditionalGeneration", "LagunaForCausalLM",
    "Llama4ForConditionalGeneration", "LongcatFlashForCausalLM", "LongcatFlashForCausalLMNextN",
    "Mamba2ForCausalLM", "MambaForCausalLM", "MellumForCausalLM", "MiMoForCausalLM",
    "MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM", "MiMoV2MTP", "MiniCPM3ForCausalLM",
    "MistralLarge3ForCausalLM", "MistralLarge3ForCausalLMEagle", "MuseGlimmerForCausalLM",
    "MuseGlimmerForConditionalGeneration", "MuseSparkForConditionalGeneration", "NanbeigeForCausalLM",
    "NemotronHForCausalLM", "NemotronHPuzzleForCausalLM", "NemotronH_Omni_Reasoning_V3",
    "PixtralForConditionalGeneration", "Qwen3MoeForCausalLM", "Qwen3NextForCausalLM", "Qwen3_5ForCausalLM",
    "Qwen3_5ForConditionalGeneration", "Qwen3_5Model", "Qwen3_5MoeForCausalLM",
    "Qwen3_5MoeForConditionalGeneration", "Qwen3_5TextModel", "Qwen4ExpForConditionalGeneration",
    "SarvamMLAForCausalLM", "Step3p5ForCausalLM", "Step3p5MTP", "Step3p7ForConditionalGeneration",
    "UnlimitedOCRForCausalLM", "WhisperForConditionalGeneration",
})  # fmt: skip
"""Architectures that `ModelConfig` renames, reshapes or reads more of: targets, drafts of other kinds."""


def derive(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that the draft's class is built from, out of `as_engine_sees`'s.

    The draft is read with default flags and an algorithm of DFlash's family.
    The argument is left unchanged; nested parts are `Attributes`.

    Raises `Refused` where `ModelConfig` would stop, and `NotModelled` for an
    architecture that it treats specially.
    """
    config = copy.deepcopy(Attributes(attributes))
    text = language_part(config)
    architectures = config["architectures"]
    first_architecture(architectures)
    if special := sorted(SPECIAL.intersection(architectures)):
        raise NotModelled(f"{', '.join(special)}: not a draft of DFlash's family")
    if text.get("model_type") == "gemma3_text" and text.get("use_bidirectional_attention", False):
        raise NotModelled("EmbeddingGemma, whatever the architecture says")
    with replayed("SGLang cannot use the config"):
        _read_rope(config, text)
        _read_hybrid_quantization(config)
        if config.get("use_ngram_embedding", False):
            _need(config, "ngram_embedding_n")
        config["context_len"] = context_length(text)
        _fill_head_dims(text)
        for name in ("hidden_size", "num_hidden_layers", "vocab_size"):
            _need(text, name)
        _ = text.get("hc_mult", 1) <= 1
        _read_window_pattern(text)
        _read_eos(config)
    # Written on every config, whatever it held.
    lm_only = config.get("language_model_only", False)
    config |= {"encoder_only": False, "language_only": False, "language_model_only": lm_only}
    return config


def context_length(text: Mapping[str, Any]) -> int:
    """The longest sequence, in tokens, stretched by the rotary scaling."""
    factor: Any = 1
    scaling = text.get("rope_scaling")
    if scaling:
        scaling = as_table(scaling, "rope_scaling")
        factor = scaling.get("factor", 1)
        if "original_max_position_embeddings" in scaling or scaling.get("rope_type") == "llama3":
            factor = 1
    for name in CONTEXT_LENGTH:
        if text.get(name) is not None:
            return int(factor * text[name])
    return 2048


def _need(attributes: Mapping[str, Any], name: str) -> Any:
    if name not in attributes:
        raise Refused(f"the config has no attribute {name!r}")
    return attributes[name]


def _read_rope(config: Mapping[str, Any], text: Mapping[str, Any]) -> None:
    """The look for multimodal rotation, which needs rotary parameters that can be searched."""
    parameters = text.get("rope_parameters") or text.get("rope_scaling", {})
    if not config.get("language_model_only", False) and parameters is not None:
        _ = "mrope_section" in parameters


def _read_hybrid_quantization(config: Mapping[str, Any]) -> None:
    """The group size and exclusions of a checkpoint that mixes FP8 with NVFP4 experts."""
    quantization = config.get("quantization_config")
    if quantization is None:
        return
    quantization = as_table(quantization, "quantization_config")
    algorithms = [str(quantization.get(key, "")).upper() for key in ("quant_algo", "moe_quant_algo")]
    if algorithms == ["MIXED_PRECISION", "NVFP4"] and quantization.get("group_size") is not None:
        _ = int(quantization["group_size"]), list(quantization.get("ignore") or [])


def _fill_head_dims(text: Attributes) -> None:
    if text.get("head_dim") is None:
        text["head_dim"] = _need(text, "hidden_size") // _need(text, "num_attention_heads")
    if text.get("v_head_dim") is None or text["v_head_dim"] == 0:
        text["v_head_dim"] = text["head_dim"]
    if text.get("swa_head_dim") is None:
        text["swa_head_dim"] = text["head_dim"]
    if text.get("swa_v_head_dim") is None:
        text["swa_v_head_dim"] = text["swa_head_dim"]


def _read_window_pattern(text: Mapping[str, Any]) -> None:
    """Which layers slide, for a config that says of itself that it mixes the two."""
    if text.get("is_hybrid_swa", False) and text.get("hybrid_layer_pattern") is not None:
        for layer in range(text["num_hidden_layers"]):
            _ = text["hybrid_layer_pattern"][layer]


def _read_eos(config: Mapping[str, Any]) -> None:
    eos = config.get("eos_token_id")
    if eos is not None and not isinstance(eos, int):
        _ = set(eos)
