"""Which target classes hand their hidden states over to a draft, and how they take the layers' ids.

Source: SGLang 0.5.23, every class that `srt/models/registry.py` knows; the server asks the class in
`configure_aux_hidden_state_capture`, `srt/model_executor/model_runner_components/attention_backend_setup.py`.
"""

from typing import Final

DFLASH: Final = frozenset(
    """
BeamForCausalLM Cosmos3ForConditionalGeneration DeepseekV2ForCausalLM DeepseekV32ForCausalLM
DeepseekV3ForCausalLM DeepseekV3ForCausalLMNextN Gemma4AssistantForCausalLM Gemma4ForCausalLM
Gemma4ForConditionalGeneration Gemma4UnifiedAssistantForCausalLM Gemma4UnifiedForConditionalGeneration
Glm4MoeLiteForCausalLM Glm4MoeLiteForCausalLMNextN Glm5NextForConditionalGeneration
Glm5NextForConditionalGenerationNextN GlmMoeDsaForCausalLM GlmMoeDsaForCausalLMNextN GptOssForCausalLM
IQuestCoderForCausalLM InklingForConditionalGeneration InternLM3ForCausalLM
InternS1ProForConditionalGeneration InternS2MobiusForConditionalGeneration
InternS2PreviewForConditionalGeneration KimiK25ForConditionalGeneration KimiK3ForConditionalGeneration
KimiK3LinearForCausalLM LagunaForCausalLM Lfm2BidirectionalModel Lfm2ForCausalLM Lfm2MoeForCausalLM
Lfm2VlForConditionalGeneration Llama4ForCausalLM LlamaForCausalLM LlamaForCausalLMEagle
LlamaForCausalLMEagle3 MellumForCausalLM MiMoV2FlashForCausalLM MiMoV2ForCausalLM MiMoV2MTP
MiniMaxM3SparseForConditionalGeneration Ministral3ForCausalLM MistralForCausalLM MistralForCausalLMEagle
MistralLarge3ForCausalLM MistralLarge3ForCausalLMEagle MuseGlimmerForCausalLM
MuseGlimmerForConditionalGeneration MuseSparkForConditionalGeneration NanbeigeForCausalLM
NemotronHForCausalLM NemotronHForCausalLMMTP NemotronHPuzzleForCausalLM NemotronH_Nano_Omni_Reasoning_V3
NemotronH_Nano_VL_V2 NemotronH_Omni_Reasoning_V3 Phi3ForCausalLM Qwen3ForCausalLM Qwen3MoeForCausalLM
Qwen3MoeForCausalLMMTP Qwen3NextForCausalLM Qwen3NextForCausalLMMTP Qwen3VLForConditionalGeneration
Qwen3VLMoeForConditionalGeneration Qwen3_5ForCausalLM Qwen3_5ForConditionalGeneration
Qwen3_5MoeForCausalLM Qwen3_5MoeForConditionalGeneration Qwen4ExpForConditionalGeneration
TeleFLMForCausalLM
""".split()
)
"""Architecture names whose class has `set_dflash_layers_to_capture`, which DSpark takes as well."""

DSPARK: Final = frozenset(
    """
BailingMoeV3ForCausalLM DeepseekV4ForCausalLM DeepseekV4ForCausalLMNextN KimiK3ForConditionalGeneration
KimiK3LinearForCausalLM KimiLinearForCausalLM MiniMaxM3SparseForConditionalGeneration
""".split()
)
"""Architecture names whose class has `set_dspark_layers_to_capture`, which DFlash does not take."""

BY_VERSION: Final = frozenset(
    ("MiniCPMV", "MiniCPMV4_6ForConditionalGeneration", "MiniCPMV4_7ForConditionalGeneration")
)
"""Names behind which the model's version picks the class: some hand over, some do not. Source:
`srt/models/minicpmv.py`."""

WITHOUT_INNER: Final = frozenset(("Cosmos3ForConditionalGeneration", "Qwen3VLForConditionalGeneration"))
"""Names whose class passes the ids on to a language model that has no such function: AttributeError.
Source: `srt/models/qwen3_vl.py`, `Qwen3VLForConditionalGeneration` and `Qwen3LLMModel`."""

LAST_LAYER_STOPS: Final = frozenset(
    """
InternS1ProForConditionalGeneration InternS2MobiusForConditionalGeneration
InternS2PreviewForConditionalGeneration MellumForCausalLM Qwen3MoeForCausalLM Qwen3NextForCausalLM
Qwen3VLMoeForConditionalGeneration Qwen3_5ForCausalLM Qwen3_5ForConditionalGeneration
Qwen3_5MoeForCausalLM Qwen3_5MoeForConditionalGeneration
""".split()
)
"""Names whose class marks the layer after the tapped one, and has none after its last: it does not start.
Source: `set_dflash_layers_to_capture` in `srt/models/qwen3_moe.py`, `qwen3_next.py`, `qwen3_5.py` and
`qwen3_5_text.py`."""

LAST_LAYER_LOST: Final = frozenset(
    """
DeepseekV2ForCausalLM DeepseekV32ForCausalLM DeepseekV3ForCausalLM Glm4MoeLiteForCausalLM
Glm5NextForConditionalGeneration GlmMoeDsaForCausalLM IQuestCoderForCausalLM InternLM3ForCausalLM
KimiK25ForConditionalGeneration LlamaForCausalLM Ministral3ForCausalLM MistralForCausalLM
MistralLarge3ForCausalLM Phi3ForCausalLM Qwen3ForCausalLM TeleFLMForCausalLM
""".split()
)
"""Names whose class captures what goes into the layer after the tapped one, and hands over one feature too
few where that was its last: the first request fails. Source: the loop over `self.layers` in
`srt/models/qwen3.py`, `llama.py`, `deepseek_v2.py`, `glm4_moe_lite.py` and `glm5_next.py`."""

ORDERED: Final = frozenset(
    """
BeamForCausalLM InklingForConditionalGeneration MiniMaxM3SparseForConditionalGeneration
Qwen3_5ForCausalLM Qwen3_5MoeForCausalLM
""".split()
)
"""Names whose class refuses ids that are not in ascending order, or one that is named twice. Source:
`set_dflash_layers_to_capture` in `srt/models/beam.py`, `inkling.py`, `minimax_m3_vl.py` and
`qwen3_5_text.py`."""

MUSE: Final = frozenset(("DFlash2DraftModel", "MuseGlimmerAssistantModel"))
"""Draft classes whose ids are shifted by one for a Muse Glimmer target, which takes what goes into a layer.

Source: SGLang 0.5.23 `srt/model_executor/model_runner_components/spec_aux_hidden_state.py`,
`_map_muse_target_layer_ids`.
"""
