"""What the rules about a target say of vLLM, asked of vLLM's own classes and functions, on a CPU."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dflash_audit.diagnosis.vllm_features import picked
from dflash_audit.engines.installed.packages import VLLM
from dflash_audit.engines.vllm import target_classes
from dflash_audit.engines.vllm.architectures import CLASSES
from dflash_audit.engines.vllm.padding import padded
from dflash_audit.engines.vllm.taps import taps

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(
        VLLM.installed_version() != target_classes.VERSION,
        reason=f"the tables are those of {target_classes.VERSION}",
    ),
]

WANTING = {"Dots3NoteForCausalLM", "KananaVForConditionalGeneration"}
"""Classes whose files import what is not there without a card, or a package that vLLM does not ask for."""

MODELS = "model_executor.models."

LOOPS = {
    "AfmoeForCausalLM": (f"{MODELS}afmoe", "AfmoeModel", 2),
    "ApertusForCausalLM": (f"{MODELS}apertus", "ApertusModel", 2),
    "BeamForCausalLM": ("models.beam.nvidia.model", "BeamModel", 2),
    "Cohere2MoeForCausalLM": (f"{MODELS}cohere2_moe", "Cohere2MoeModel", 2),
    "DeepseekV32ForCausalLM": ("models.deepseek_v32.nvidia.model", "DeepseekV32Model", 2),
    "DeepseekV3ForCausalLM": (f"{MODELS}deepseek_v2", "DeepseekV2Model", 2),
    "Gemma4ForCausalLM": (f"{MODELS}gemma4", "Gemma4Model", 2),
    "Glm5NextForCausalLM": ("models.glm5next.common.model", "Glm5NextModel", 4),
    "GptOssForCausalLM": (f"{MODELS}gpt_oss", "GptOssModel", 2),
    "GraniteForCausalLM": (f"{MODELS}granite", "GraniteModel", 1),
    "GraniteMoeForCausalLM": (f"{MODELS}granitemoe", "GraniteMoeModel", 1),
    "GraniteMoeSharedForCausalLM": (f"{MODELS}granitemoeshared", "GraniteMoeSharedModel", 1),
    "InternS2MobiusForConditionalGeneration": (f"{MODELS}interns2_mobius", "InternS2MobiusModel", 2),
    "K2HorizonForCausalLM": (f"{MODELS}k2_horizon", "K2HorizonModel", 2),
    "KimiLinearForCausalLM": ("models.kimi_k3.nvidia.model", "KimiLinearModel", 3),
    "LagunaForCausalLM": (f"{MODELS}laguna", "LagunaModel", 2),
    "Llama4ForCausalLM": (f"{MODELS}llama4", "Llama4Model", 2),
    "LlamaForCausalLM": (f"{MODELS}llama", "LlamaModel", 2),
    "MiMoForCausalLM": (f"{MODELS}mimo", "MiMoModel", 2),
    "MiMoV2FlashForCausalLM": (f"{MODELS}mimo_v2", "MiMoV2Model", 2),
    "MiniCPMForCausalLM": (f"{MODELS}minicpm", "MiniCPMModel", 2),
    "MiniMaxM2ForCausalLM": (f"{MODELS}minimax_m2", "MiniMaxM2Model", 2),
    "MiniMaxM3SparseForCausalLM": ("models.minimax_m3.nvidia.model", "MiniMaxM3Model", 2),
    "MistralForCausalLM": (f"{MODELS}mistral", "MistralModel", 2),
    "MuseGlimmerForCausalLM": (f"{MODELS}muse_glimmer", "MuseGlimmerModel", 2),
    "NemotronHForCausalLM": (f"{MODELS}nemotron_h", "NemotronHModel", 2),
    "Plamo3ForCausalLM": (f"{MODELS}plamo3", "Plamo3Decoder", 2),
    "Qwen2ForCausalLM": (f"{MODELS}qwen2", "Qwen2Model", 2),
    "Qwen3ForCausalLM": (f"{MODELS}qwen3", "Qwen3Model", 2),
    "Qwen3MoeForCausalLM": (f"{MODELS}qwen3_moe", "Qwen3MoeModel", 2),
    "Qwen3NextForCausalLM": (f"{MODELS}qwen3_next", "Qwen3NextModel", 2),
    "Qwen3OmniMoeForConditionalGeneration": (f"{MODELS}qwen3_omni_moe_thinker", "Qwen3MoeLLMModel", 2),
    "Qwen3VLForConditionalGeneration": (f"{MODELS}qwen3_vl", "Qwen3LLMModel", 2),
    "Qwen3VLMoeForConditionalGeneration": (f"{MODELS}qwen3_vl_moe", "Qwen3MoeLLMModel", 2),
    "Qwen3_5ForCausalLM": (f"{MODELS}qwen3_5", "Qwen3_5Model", 2),
    "SarvamMLAForCausalLM": (f"{MODELS}sarvam", "SarvamMLAModel", 2),
    "Step1ForCausalLM": (f"{MODELS}step1", "StepDecoderModel", 2),
    "TeleChat2ForCausalLM": (f"{MODELS}telechat2", "TeleChat2Model", 2),
}
"""Architecture -> the model with the loop over its layers, and how many tensors these pass on."""

DEPTH = 6

INNER = {
    "CohereCompassForConditionalGeneration": (f"{MODELS}cohere_compass", "CohereCompassTextModel"),
    "Exaone4_5_ForConditionalGeneration": (f"{MODELS}exaone4", "Exaone4Model"),
    "Qwen4ExpForConditionalGeneration": ("models.qwen4_exp.nvidia.model", "Qwen4ExpModel"),
}

MUSE_GLIMMER = ("model", f"{MODELS}muse_glimmer", "MuseGlimmerModel")

CHILD = {
    "MuseGlimmerForCausalLM": MUSE_GLIMMER,
    "MuseGlimmerForConditionalGeneration": MUSE_GLIMMER,
    "Qwen3VLForConditionalGeneration": ("language_model", f"{MODELS}qwen3_vl", "Qwen3LLMForCausalLM"),
    "RadioMBartPrefixForCausalLM": ("decoder", f"{MODELS}nemotron_parse3_5", "MBartDecoderNoPos"),
}
"""Architecture -> the part that is its language model, and that one's class. One of them has a `model`."""

CONFIGS: list[dict[str, Any]] = [
    {},
    {"dflash_config": {}},
    {"dflash_config": {"target_layer_ids": [1, 4, 1]}},
    {"dflash_config": {"target_layer_ids": []}, "target_layer_ids": [3, 5]},
    {"eagle_aux_hidden_state_layer_ids": [2, 9], "dflash_config": {"target_layer_ids": [1, 4]}},
    {"eagle_aux_hidden_state_layer_ids": [], "dspark_target_layer_ids": [0, 7]},
    {"dspark_target_layer_ids": [6], "target_layer_ids": [3]},
    {"dflash_config": {"layer_ids": [1, 2]}, "eagle_config": {"layer_ids": [5]}},
    {"eagle_config": {"layer_ids": [5]}},
    {"eagle_aux_hidden_state_layer_ids": "12", "target_layer_ids": [3]},
]

SPECULATORS = (
    "dflash.speculator:DFlashSpeculator",
    "dflash2.speculator:DFlash2Speculator",
    "dspark.speculator:DSparkSpeculator",
    "lilicorr.speculator:LiLiCorrSpeculator",
    "xpress.speculator:XPressSpeculator",
)


class Asked:
    """`run_targets.py`, which answers a question at a time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def __call__(self, *question: Any) -> Any:
        """The answer, or in words what was raised."""
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None and answers is not None
        print(json.dumps(question), file=questions, flush=True)
        answer = answers.readline()
        assert answer, f"it died of {question}"
        return json.loads(answer)


@pytest.fixture(scope="module")
def vllm() -> Iterator[Asked]:
    script = Path(__file__).with_name("run_targets.py")
    path = os.pathsep.join([str(script.parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "VLLM_LOGGING_LEVEL": "ERROR"},
        text=True,
    )
    with process:
        yield Asked(process)


def test_which_classes_have_the_interface(vllm: Asked) -> None:
    found = vllm("interfaces")
    known = {name: has for name, has in found.items() if has is not None}
    assert found.keys() - known.keys() <= WANTING
    assert found.keys() == target_classes.EAGLE3 | target_classes.WITHOUT
    assert {name for name, has in known.items() if has} == target_classes.EAGLE3


@pytest.mark.parametrize("name", LOOPS)
def test_which_layers_they_hand_over(name: str, vllm: Asked) -> None:
    """In ascending order and each once, whatever is asked for, and none beyond the last."""
    lost = {DEPTH} if name in target_classes.LAST_LAYER_LOST else set()
    there = [] if name in target_classes.SILENT else sorted({2, 5, DEPTH} - lost)
    assert vllm("handed_over", *LOOPS[name], DEPTH, [DEPTH + 1, DEPTH, 2, 2, 5]) == there


@pytest.mark.parametrize("name", LOOPS)
def test_what_they_do_with_the_embedding(name: str, vllm: Asked) -> None:
    found = vllm("handed_over", *LOOPS[name], DEPTH, [0, 3])
    if name in target_classes.EMBEDDING_STOPS:
        assert found.startswith("TypeError: ")
    else:
        assert found == ([] if name in target_classes.SILENT else [0, 3])


def test_all_that_pass_the_layers_on_in_vain() -> None:
    assert INNER.keys() == target_classes.WITHOUT_INNER


@pytest.mark.parametrize("model", INNER.values())
def test_which_pass_the_layers_on_in_vain(model: tuple[str, str], vllm: Asked) -> None:
    assert not vllm("inner_takes_layers", *model)


def test_all_whose_language_model_has_no_model() -> None:
    assert CHILD.keys() - {"Qwen3VLForConditionalGeneration"} == target_classes.WITHOUT_MODEL


@pytest.mark.parametrize("name", CHILD)
def test_which_language_models_have_no_model(name: str, vllm: Asked) -> None:
    of = CHILD[name]
    assert vllm("language_model", name, *of) == [of[-1], name not in target_classes.WITHOUT_MODEL]


@pytest.mark.parametrize("config", CONFIGS)
def test_which_layers_a_config_asks_for(config: dict[str, Any], vllm: Asked) -> None:
    named = taps(config)
    assert (None if named is None else named.counted) == vllm("asked_by", config)


@pytest.mark.parametrize("depth", [4, 5, 8, 36, 62])
def test_which_layers_a_class_picks(depth: int, vllm: Asked) -> None:
    assert picked(depth) == sorted(set(vllm("picked", depth)))


@pytest.mark.parametrize("speculator", SPECULATORS)
def test_features_of_another_width_stop_the_first_run(speculator: str, vllm: Asked) -> None:
    """Whatever the speculator: none keeps them in another way."""
    said = vllm("in_the_first_run", speculator, 12, 8)
    assert said.startswith(
        "ValueError: DFlash drafter expects 12 concatenated aux hidden features but received 8."
    )
    assert vllm("in_the_first_run", speculator, 12, 0) is None


@pytest.mark.parametrize(("architecture", "name"), CLASSES.items())
def test_each_kind_of_draft_refuses_them(architecture: str, name: str, vllm: Asked) -> None:
    assert vllm("class_of", architecture) == name
    fewer, more, right = (vllm("joined", architecture, 12, received) for received in (8, 16, 12))
    for said in (fewer, more):
        assert said.startswith(("RuntimeError: ", "ValueError: "))
    assert right == [3, 4]


@pytest.mark.parametrize("tokens", [1, 64, 65, 151936])
def test_how_long_a_table_of_tokens_is(tokens: int, vllm: Asked) -> None:
    assert vllm("rows", tokens) == padded(tokens)


def test_a_plain_draft_has_no_more_answers_than_the_head_has_logits(vllm: Asked) -> None:
    assert vllm("answered", 128, 64).startswith("RuntimeError: ")
    assert vllm("answered", 60, 64) == [3, 60]


@pytest.mark.parametrize("token", [99, 100, 127])
def test_a_token_in_the_rows_that_fill_a_table_up_is_embedded_as_zeros(token: int, vllm: Asked) -> None:
    assert vllm("embedded", 100, token, 1) == [float(token < 100)] * 4


def test_a_token_beyond_the_table_fails_on_one_rank_alone(vllm: Asked) -> None:
    assert vllm("embedded", 100, 128, 1).startswith("IndexError: ")
    assert vllm("embedded", 100, 128, 2) == [0.0] * 4
