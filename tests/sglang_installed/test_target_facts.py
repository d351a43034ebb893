"""What the rules about a target say of SGLang, asked of SGLang's own functions with the numbers alone."""

from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from dflash_audit.diagnosis.with_target import TABLES_OF
from dflash_audit.engines.installed.packages import SGLANG
from dflash_audit.engines.sglang import target_classes

pytestmark = [
    pytest.mark.sglang,
    pytest.mark.warmup,
    pytest.mark.skipif(find_spec("sglang") is None, reason="SGLang is not installed"),
    pytest.mark.skipif(
        SGLANG.installed_version() != TABLES_OF, reason=f"the tables are those of {TABLES_OF}"
    ),
]

DEPTH = 4


def srt(module: str) -> Any:
    return import_module(f"sglang.srt.{module}")


def worker() -> Any:
    return srt("speculative.dflash_worker_v2").DFlashWorkerV2


def test_the_classes_that_hand_over_hidden_states() -> None:
    models = srt("models.registry").ModelRegistry.models
    for table, function in (
        (target_classes.DFLASH, "set_dflash_layers_to_capture"),
        (target_classes.DSPARK, "set_dspark_layers_to_capture"),
    ):
        assert {name for name, model in models.items() if hasattr(model, function)} == table


def test_another_class_stops_the_server() -> None:
    configure = srt("model_executor.model_runner_components.attention_backend_setup")
    with pytest.raises(ValueError, match="implements neither"):
        configure.configure_aux_hidden_state_capture(
            model=object(),
            eagle_use_aux_hidden_state=False,
            eagle_aux_hidden_state_layer_ids=None,
            dflash_use_aux_hidden_state=True,
            dflash_target_layer_ids=[0, 1],
            is_dspark=True,
        )


def test_qwen3_vl_passes_the_ids_on_to_a_model_without_the_function() -> None:
    vl = srt("models.qwen3_vl")
    inner = vl.Qwen3LLMModel.__new__(vl.Qwen3LLMModel)
    with pytest.raises(AttributeError):
        vl.Qwen3VLForConditionalGeneration.set_dflash_layers_to_capture(
            SimpleNamespace(pp_group=SimpleNamespace(is_last_rank=True), model=inner), [0]
        )


def test_ids_beyond_the_target_are_refused() -> None:
    utils = srt("speculative.dflash_utils")
    config = utils.parse_dflash_draft_config(
        draft_hf_config={"num_hidden_layers": 2, "dflash_config": {"target_layer_ids": [1, 4]}}
    )
    assert config.resolve_target_layer_ids(target_num_layers=5) == [1, 4]
    with pytest.raises(ValueError, match="out-of-range"):
        config.resolve_target_layer_ids(target_num_layers=4)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("qwen3_moe", "Qwen3MoeModel"),
        ("qwen3_vl_moe", "Qwen3MoeLLMModel"),
        ("qwen3_next", "Qwen3NextModel"),
        ("qwen3_5", "Qwen3_5ForCausalLM"),
        ("interns1pro", "InternS1ProTextModel"),
        ("interns2_mobius", "InternS2MobiusForCausalLM"),
    ],
)
def test_classes_that_the_last_layer_stops(module: str, name: str) -> None:
    inner = getattr(srt(f"models.{module}"), name)
    model = SimpleNamespace(layers=[SimpleNamespace() for _ in range(DEPTH)])
    inner.set_dflash_layers_to_capture(model, [DEPTH - 1])
    with pytest.raises(IndexError):
        inner.set_dflash_layers_to_capture(model, [DEPTH])


@pytest.mark.parametrize("ids", [[DEPTH - 1], [1, 1], [2, 1]])
def test_a_class_that_refuses_the_last_layer_and_ids_out_of_order(ids: list[int]) -> None:
    model = SimpleNamespace(pp_group=SimpleNamespace(world_size=1), model=SimpleNamespace(layers=[0] * DEPTH))
    with pytest.raises(ValueError, match="strictly increasing"):
        srt("models.qwen3_5_text").Qwen3_5ForCausalLM.set_dflash_layers_to_capture(model, ids)


@pytest.mark.parametrize(
    ("module", "name", "captured"),
    [("qwen3", "Qwen3Model", 1), ("llama", "LlamaModel", 1), ("gpt_oss", "GptOssModel", 2)],
)
def test_what_a_target_hands_over_of_its_last_layer(
    module: str, name: str, captured: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layers 0 and 3 of four are asked for, each by the one after it."""
    torch = pytest.importorskip("torch")
    source = srt(f"models.{module}")
    hidden = torch.zeros(2, 8)

    def layer(*_: Any, capture_output: Any = None) -> Any:
        if capture_output is not None:
            capture_output(hidden)
        return hidden

    def final_norm(states: Any, *_: Any, capture: Any = None, **__: Any) -> Any:
        if capture is not None:
            capture(hidden)
        return states

    residual = MagicMock(final_norm=final_norm, complete_output=lambda states, _: states)
    monkeypatch.setattr(source, "residual_batch", residual)
    model = SimpleNamespace(
        pp_group=SimpleNamespace(is_first_rank=True, is_last_rank=True),
        layers=[layer] * DEPTH,
        start_layer=0,
        end_layer=DEPTH,
        layers_to_capture=[1, DEPTH],
        norm=None,
    )
    given = MagicMock()
    _, features = getattr(source, name).forward(model, given, given, given, input_embeds=hidden)
    assert len(features) == captured


def fc_of(width: int, dtype: Any) -> Any:
    torch = pytest.importorskip("torch")
    return SimpleNamespace(
        fc=torch.nn.Linear(2 * width, width, bias=False, dtype=dtype),
        quantizable=False,
        num_context_features=2,
        config=SimpleNamespace(hidden_size=width),
        hidden_norm=torch.nn.Identity(),
    )


def test_features_of_another_width_are_refused() -> None:
    torch = pytest.importorskip("torch")
    project = srt("models.dflash").DFlashDraftModel.project_target_hidden
    assert project(fc_of(8, torch.float32), torch.zeros(3, 16)).shape == (3, 8)
    with pytest.raises(ValueError, match="feature dim mismatch"):
        project(fc_of(8, torch.float32), torch.zeros(3, 20))


def test_features_of_another_dtype_are_not_cast() -> None:
    torch = pytest.importorskip("torch")
    project = srt("models.dflash").DFlashDraftModel.project_target_hidden
    with pytest.raises(RuntimeError, match="dtype"):
        project(fc_of(8, torch.bfloat16), torch.zeros(3, 16, dtype=torch.float16))


@pytest.mark.parametrize(
    ("said", "served"),
    [("bfloat16", "bfloat16"), ("float16", "float16"), ("float32", "float16"), (None, "float16")],
)
def test_the_dtype_that_a_model_is_served_in(said: str | None, served: str) -> None:
    config = SimpleNamespace(dtype=said, model_type="qwen3")
    assert str(srt("configs.model_config")._get_and_verify_dtype(config, "auto")) == f"torch.{served}"


@pytest.mark.parametrize("token", [63, 64])
def test_the_mask_token_has_to_be_a_row_of_the_target(token: int) -> None:
    target = SimpleNamespace(
        model_runner=SimpleNamespace(model_config=SimpleNamespace(vocab_size=64)), tokenizer=None
    )
    dspark = srt("speculative.dspark_components.dspark_config")
    config = {
        "num_hidden_layers": 2,
        "markov_rank": 4,
        "markov_head_type": "vanilla",
        "mask_token_id": token,
    }

    def resolve() -> list[int]:
        dflash = worker()._resolve_mask_token_id(
            SimpleNamespace(target_worker=target), mask_token="<|MASK|>", mask_token_id=token
        )
        return [dflash, _of_dspark()]

    def _of_dspark() -> int:
        resolved = dspark.resolve_runtime_config(
            draft_hf_config=config, speculative_num_draft_tokens=8, target_vocab_size=64
        )
        return int(resolved.mask_token_id)

    if token < 64:
        assert resolve() == [token, token]
        return
    with pytest.raises(ValueError, match="outside the target vocab size"):
        resolve()
    with pytest.raises(ValueError, match="outside the target"):
        _of_dspark()


@pytest.mark.parametrize("length", [4096, 4097])
def test_a_draft_is_built_for_the_targets_context(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    config = srt("configs.model_config")
    monkeypatch.setattr(config, "is_in_ci", lambda: False)
    monkeypatch.delenv("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", raising=False)
    draft = SimpleNamespace(
        is_draft_model=True,
        hf_text_config=SimpleNamespace(max_position_embeddings=4096),
        hf_config=SimpleNamespace(architectures=["DFlashDraftModel"]),
    )
    if length == 4096:
        config.ModelConfig._derive_context_length(draft, length)
        assert draft.context_len == length
        return
    with pytest.raises(ValueError, match="SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"):
        config.ModelConfig._derive_context_length(draft, length)


def scaled_head(method: str) -> Any:
    """A head that is quantized under the name weight, as compressed-tensors and ModelOpt leave it."""
    torch = pytest.importorskip("torch")
    of = type(method, (), {"apply": lambda self, layer, hidden, bias: torch.zeros(len(hidden), 64)})
    return SimpleNamespace(
        weight=torch.zeros(64, 8).to(torch.float8_e4m3fn),
        weight_scale=torch.ones(64, 1),
        input_scale=torch.ones(1),
        quant_method=of(),
    )


def packed_head() -> Any:
    head = scaled_head("CompressedTensorsLinearMethod")
    head.weight_packed = head.weight
    del head.weight
    return head


@pytest.mark.parametrize("method", ["CompressedTensorsLinearMethod", "ModelOptFp8LinearMethod"])
def test_which_heads_candidates_are_taken_from(method: str) -> None:
    usable = srt("layers.logits_processor").should_apply_lm_head_quant_method
    assert usable(scaled_head(method), scaled_head(method).quant_method)
    packed = packed_head()
    assert not usable(packed, packed.quant_method)
    with pytest.raises(RuntimeError, match="requires a dense"):
        srt("models.dflash").candidate_topk(None, packed, 4)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_plain_draft_takes_a_quantized_head_with_one_rank_alone(
    ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    parallel = SimpleNamespace(tp_group=SimpleNamespace(world_size=ranks))
    monkeypatch.setattr(srt("speculative.dflash_worker_v2"), "get_parallel", lambda: parallel)

    def sample() -> Any:
        return worker()._greedy_sample_from_quantized_head(
            None, hidden_states=torch.zeros(3, 8), lm_head=packed_head(), chunk_size=2
        )

    if ranks == 1:
        assert sample().shape == (3,)
        return
    with pytest.raises(RuntimeError, match="only supported at"):
        sample()


def test_a_domino_draft_wants_the_targets_vocabulary_and_its_tables_in_bfloat16() -> None:
    torch = pytest.importorskip("torch")

    def table(dtype: Any) -> Any:
        return SimpleNamespace(weight=torch.zeros(64, 8, dtype=dtype))

    def validate(vocabulary: int, head: Any) -> None:
        srt("speculative.domino_utils").validate_domino_runtime(
            device=torch.device("cuda"),
            tp_size=1,
            tp_rank=0,
            target_vocab_size=64,
            draft_vocab_size=vocabulary,
            hidden_size=8,
            target_embedding=table(torch.bfloat16),
            lm_head=head,
            prefix_gru=torch.nn.GRU(8, 4, bias=False, dtype=torch.bfloat16),
            embed_proj=torch.nn.Sequential(
                torch.nn.Linear(12, 4, bias=False, dtype=torch.bfloat16),
                torch.nn.SiLU(),
                torch.nn.Linear(4, 64, bias=False, dtype=torch.bfloat16),
            ),
        )

    validate(64, table(torch.bfloat16))
    with pytest.raises(ValueError, match="identical target and draft vocab"):
        validate(65, table(torch.bfloat16))
    with pytest.raises(ValueError, match="BF16"):
        validate(64, table(torch.float8_e4m3fn))
    with pytest.raises(ValueError, match="weight tensors"):
        validate(64, packed_head())
