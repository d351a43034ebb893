"""Which target classes hand their hidden states over to a draft, and what each of them leaves out.

vLLM asks a target as it asks it for EAGLE-3, and counts what goes into the first layer as 0 and what comes
out of the n-th as n. Nearly all classes add each of those that it is asked for in one loop over their layers,
so that a state that is asked for twice comes once, and all come in ascending order.

Source: vLLM 0.33.0 `model_executor/models/registry.py`, `interfaces.py` (`supports_eagle3`,
`EagleModelMixin`), `v1/worker/gpu/spec_decode/eagle/eagle3_utils.py`, and the loop over the layers of every
class that has the interface.
"""

from typing import Final

VERSION: Final = "0.33.0"
"""The version that these tables were read from."""

EAGLE3: Final = frozenset(
    """
AfmoeForCausalLM Alpamayo2Super ApertusForCausalLM BeamForCausalLM Cohere2MoeForCausalLM
CohereCompassForConditionalGeneration Cosmos3ForConditionalGeneration DeepseekForCausalLM
DeepseekV2ForCausalLM DeepseekV32ForCausalLM DeepseekV3ForCausalLM DeepseekV41ForCausalLM
DeepseekV4ForCausalLM DeepseekV4ForConditionalGeneration Ernie4_5ForCausalLM
Exaone4_5_ForConditionalGeneration Gemma4ForCausalLM Gemma4ForConditionalGeneration
Gemma4UnifiedForConditionalGeneration Glm5NextForCausalLM Glm5NextForConditionalGeneration
GlmMoeDsaForCausalLM GptOssForCausalLM GraniteForCausalLM GraniteMoeForCausalLM GraniteMoeSWAForCausalLM
GraniteMoeSharedForCausalLM GraniteSWAForCausalLM IQuestCoderForCausalLM InternLM3ForCausalLM
InternS1ProForConditionalGeneration InternS2MobiusForConditionalGeneration
InternS2PreviewForConditionalGeneration K2HorizonForCausalLM KimiK25ForConditionalGeneration
KimiK3ForConditionalGeneration KimiLinearForCausalLM LLaMAForCausalLM LagunaForCausalLM
LightOnOCRForConditionalGeneration Llama4ForCausalLM Llama4ForConditionalGeneration LlamaForCausalLM
LlavaForConditionalGeneration MiMoForCausalLM MiMoV2FlashForCausalLM MiMoV2ForCausalLM MiMoV2OmniForCausalLM
MiniCPM3ForCausalLM MiniCPMForCausalLM MiniCPMOcrForConditionalGeneration
MiniCPMV4_6ForConditionalGeneration MiniCPMV4_7ForConditionalGeneration MiniMaxM2ForCausalLM
MiniMaxM3SparseForCausalLM MiniMaxM3SparseForConditionalGeneration Ministral3ForCausalLM
Mistral3ForConditionalGeneration MistralForCausalLM MistralLarge3ForCausalLM MuseGlimmerForCausalLM
MuseGlimmerForConditionalGeneration MuseSparkForConditionalGeneration NemotronHForCausalLM
NemotronHPuzzleForCausalLM NemotronH_Nano_Omni_Reasoning_V3 NemotronH_Nano_VL_V2 NemotronH_Omni_Reasoning_V3
NemotronH_Super_Omni_Reasoning_V3 OpenCUAForConditionalGeneration Phi3ForCausalLM
PixtralForConditionalGeneration Plamo3ForCausalLM Qwen2ForCausalLM Qwen2_5_VLForConditionalGeneration
Qwen3ASRForConditionalGeneration Qwen3ASRRealtimeGeneration Qwen3ForCausalLM Qwen3MoeForCausalLM
Qwen3NextForCausalLM Qwen3OmniMoeForConditionalGeneration Qwen3VLForConditionalGeneration
Qwen3VLMoeForConditionalGeneration Qwen3_5ForCausalLM Qwen3_5ForConditionalGeneration Qwen3_5MoeForCausalLM
Qwen3_5MoeForConditionalGeneration Qwen4ExpForConditionalGeneration RadioMBartPrefixForCausalLM
SarvamMLAForCausalLM Step1ForCausalLM TeleChat2ForCausalLM TeleChat3ForCausalLM TeleFLMForCausalLM
""".split()
)
"""Architecture names of models that generate whose class in vLLM has the interface. Those of LLaVA's kind
pass what they are asked on to the language model that `text_config` names, of which nothing is said."""

WITHOUT: Final = frozenset(
    """
AXK1ForCausalLM AliceAIForCausalLM AriaForConditionalGeneration AudioFlamingo3ForConditionalGeneration
BagelForConditionalGeneration BailingMoeForCausalLM BailingMoeV2ForCausalLM BailingMoeV2_5ForCausalLM
BailingMoeV3ForCausalLM BailingMoeV3VLForConditionalGeneration BeeForConditionalGeneration
Blip2ForConditionalGeneration BloomForCausalLM ChatGLMForConditionalGeneration ChatGLMModel
Cohere2ForCausalLM Cohere2VisionForConditionalGeneration CohereAsrForConditionalGeneration CohereForCausalLM
Cosmos3EdgeForConditionalGeneration DbrxForCausalLM DeciLMForCausalLM DeepseekOCR2ForCausalLM
DeepseekOCRForCausalLM DeepseekVLV2ForCausalLM DiffusionGemmaForBlockDiffusion DomynEdgeForCausalLM
DoryForCausalLM Dots3NoteForCausalLM DotsOCRForCausalLM Eagle2_5_VLForConditionalGeneration
Ernie4_5_MoeForCausalLM Ernie4_5_VLMoeForConditionalGeneration Exaone4ForCausalLM ExaoneForCausalLM
ExaoneMoEForCausalLM ExaoneMoeForCausalLM FalconForCausalLM FalconH1ForCausalLM FalconMambaForCausalLM
FireRedASR2ForConditionalGeneration FlintForCausalLM FunASRForConditionalGeneration
FunAudioChatForConditionalGeneration GLM4VForCausalLM GPT2LMHeadModel GPTJForCausalLM Gemma2ForCausalLM
Gemma3ForCausalLM Gemma3ForConditionalGeneration Gemma3nForCausalLM Gemma3nForConditionalGeneration
GemmaForCausalLM Glm4ForCausalLM Glm4MoeForCausalLM Glm4MoeLiteForCausalLM Glm4vForConditionalGeneration
Glm4vMoeForConditionalGeneration GlmAsrForConditionalGeneration GlmOcrForConditionalGeneration
Granite4VisionForConditionalGeneration GraniteMoeHybridForCausalLM GraniteSpeechForConditionalGeneration
GraniteSpeechPlusForConditionalGeneration H2OVLChatModel HCXVisionV2ForCausalLM HYV3ForCausalLM
HYV4ForCausalLM HfMoondream HrmTextForCausalLM HyperCLOVAXForCausalLM IQuestLoopCoderForCausalLM
Idefics3ForConditionalGeneration InklingForCausalLM InklingForConditionalGeneration InternLM2ForCausalLM
InternS1ForConditionalGeneration InternVLChatModel InternVLForConditionalGeneration
IsaacForConditionalGeneration JambaForCausalLM KananaVForConditionalGeneration KeyeForConditionalGeneration
KeyeVL1_5ForConditionalGeneration KimiVLForConditionalGeneration Lfm2ForCausalLM Lfm2MoeForCausalLM
Lfm2VlForConditionalGeneration Llama_Nemotron_Nano_VL LlavaNextForConditionalGeneration
LlavaNextVideoForConditionalGeneration LlavaOnevision2ForConditionalGeneration
LlavaOnevisionForConditionalGeneration LongcatFlashForCausalLM LongcatFlashNgramForCausalLM
Mamba2ForCausalLM MambaForCausalLM MiDashengLMModel MiniCPMO MiniCPMV MixtralForCausalLM
Molmo2ForConditionalGeneration MolmoForCausalLM Moondream3ForCausalLM MoonshotKimiaForCausalLM
MossAudioModel MossTranscribeDiarizeForConditionalGeneration NVLM_D NemotronForCausalLM
NemotronParseForConditionalGeneration OPTForCausalLM OlmoHybridForCausalLM OlmoeForCausalLM
OpenPanguVLForConditionalGeneration OpenVLAForActionPrediction OrionForCausalLM Ovis Ovis2_5
Ovis2_6ForCausalLM Ovis2_6_MoeForCausalLM PaddleOCRVLForConditionalGeneration
PaliGemmaForConditionalGeneration PanguEmbeddedForCausalLM PanguProMoEV2ForCausalLM PanguUltraMoEForCausalLM
Param2MoEForCausalLM Phi3VForCausalLM Phi4ForCausalLMV Phi4MMForCausalLM PhiMoEForCausalLM
QianfanOCRForConditionalGeneration Qwen2AudioForConditionalGeneration Qwen2MoeForCausalLM
Qwen2VLForConditionalGeneration Qwen2_5OmniForConditionalGeneration Qwen2_5OmniModel Qwen4ExpForCausalLM
RForConditionalGeneration Rnj1ForCausalLM SarvamMoEForCausalLM SkyworkR1VChatModel
SmolVLMForConditionalGeneration SolarForCausalLM StableLmForCausalLM Step3TextForCausalLM
Step3VLForConditionalGeneration Step3p5ForCausalLM Step3p7ForConditionalGeneration Step5ForCausalLM
Step5ForConditionalGeneration StepVLForConditionalGeneration UltravoxModel UnlimitedOCRForCausalLM
VoxtralForConditionalGeneration VoxtralRealtimeGeneration WhisperForConditionalGeneration Zamba2ForCausalLM
""".split()
)
"""Those whose class has it not: RuntimeError as the models are loaded. Names that vLLM hands to transformers'
own code are in neither table."""

WITHOUT_INNER: Final = frozenset(
    (
        "CohereCompassForConditionalGeneration",
        "Exaone4_5_ForConditionalGeneration",
        "Qwen4ExpForConditionalGeneration",
    )
)
"""Names whose class inherits the interface over a language model that is no `EagleModelMixin`:
AssertionError as the models are loaded. Source: `cohere_compass.py` (`CohereCompassTextModel`), `exaone4.py`
(`Exaone4Model`) and `models/qwen4_exp/nvidia/model.py` (`Qwen4ExpModel`)."""

SILENT: Final = frozenset(("MiMoForCausalLM",))
"""Names whose class takes the layers, and hands none of them over: AssertionError in the first run. Source:
`mimo.py`, `MiMoModel.forward`."""

WITHOUT_MODEL: Final = frozenset(
    ("MuseGlimmerForCausalLM", "MuseGlimmerForConditionalGeneration", "RadioMBartPrefixForCausalLM")
)
"""Names whose class gives as its language model what has the layers itself, and no `model`: AttributeError as
a draft is loaded that takes tables of the target's as a DSpark draft does. Source:
`v1/worker/gpu/spec_decode/dspark/utils.py` (`load_dspark_model`), `muse_glimmer.py`,
`nemotron_parse3_5.py`."""

QWEN3_OMNI: Final = frozenset(
    ("Qwen3OmniMoeForConditionalGeneration", "Qwen3OmniMoeThinkerForConditionalGeneration")
)
QWEN3_OMNI_TYPE: Final = "qwen3_omni_moe"
QWEN3_OMNI_DRAFT: Final = "Qwen3OmniDSparkModel"
"""The only architecture that a DSpark draft may have beside a target of one of those names, or of that model
type: ValueError as the config is read. Source: `config/speculative.py`, `_validate_qwen3_omni_dspark`."""

COUNTED_ELSEWHERE: Final = frozenset(("NemotronHPuzzleForCausalLM", "RadioMBartPrefixForCausalLM"))
"""Names whose class takes the number of its layers from another key than `num_hidden_layers`. Source:
`nemotron_h.py`, `nemotron_parse3_5.py`."""

LAST_LAYER_LOST: Final = frozenset(("DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM"))
"""Names whose class looks before each layer alone, and so does not hand over what its last one puts out.
Source: `models/deepseek_v32/nvidia/model.py`."""

EMBEDDING_LOST: Final = frozenset(("DeepseekV4ForCausalLM", "DeepseekV4ForConditionalGeneration"))
"""Names whose class looks after each layer alone, and so does not hand over what goes into its first. Source:
`models/deepseek_v4/nvidia/model.py`."""

EMBEDDING_STOPS: Final = frozenset(
    """
DeepseekForCausalLM DeepseekV2ForCausalLM DeepseekV3ForCausalLM KimiK25ForConditionalGeneration
MistralLarge3ForCausalLM
""".split()
)
"""Names whose class adds a residual that is not there yet to what goes into its first layer: TypeError in the
first run. Source: `deepseek_v2.py`, `DeepseekV2Model.forward`."""

EMBEDDING_UNKNOWN: Final = frozenset(("DeepseekV41ForCausalLM",))
"""Names of which nothing is said about what goes into the first layer. Source:
`models/deepseek_v41/nvidia/model.py`."""
