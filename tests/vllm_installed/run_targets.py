"""What the installed vLLM does with targets, for `test_live_targets.py`: a question a line, an answer a line.

It is imported as it is on a machine without a card. The loop over the layers of each model is vLLM's own; its
layers, its embedding and its norm are stand-ins, so that what is handed over tells after which layer it was
taken.
"""

import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch

from dflash_audit.engines.vllm_installed.child.platform import be_rank_0_of

WIDTH = 4

ATTRIBUTES: Mapping[str, Any] = {
    "config": SimpleNamespace(hidden_size=WIDTH, rms_norm_eps=1e-6, embedding_multiplier=1.0),
    "start_layer": 0,
    "_aux_hidden_state": lambda self, hidden, *rest: hidden,
    "embedding_dropout": lambda self, hidden: hidden,
    "get_per_layer_inputs": lambda self, ids: None,
    "project_per_layer_inputs": lambda self, hidden, embeddings: None,
    "embedding_multiplier": 1.0,
    "fast_prefill_enabled": False,
    "fuse_final_norm_allreduce": False,
    "hidden_size_per_layer_input": 0,
    "is_sequence_parallel": False,
    "meta_mlp": None,
    "mup_enabled": False,
    "num_attn_res_blocks": 1,
    "replicated_embed": False,
    "use_attn_res": False,
    "use_mega_moe": False,
    "use_native_mega_moe": False,
    "use_sequence_parallel": False,
    "uses_rms_norm": True,
}
"""What one model or another reads on the way to its loop, as a server on one rank has it."""


class Layer(torch.nn.Module):  # type: ignore[misc]
    """The n-th layer puts out n, and zeros beside it: a residual, and what else a model passes on."""

    input_layernorm = None

    def __init__(self, number: int, outputs: int) -> None:
        super().__init__()
        self.number, self.outputs = number, outputs

    def forward(self, *given: Any, **named: Any) -> Any:
        tensors = (each for each in (*given, *named.values()) if isinstance(each, torch.Tensor))
        hidden = torch.full_like(next(each for each in tensors if each.is_floating_point()), self.number)
        beside = [torch.zeros_like(hidden)] * (self.outputs - 1)
        return (hidden, *beside) if beside else hidden


def model(module: str, name: str, outputs: int, depth: int) -> Any:
    """vLLM's model of so many stand-in layers."""

    def embed(self: Any, ids: Any) -> Any:
        return torch.zeros(len(ids), WIDTH)

    def norm(self: Any, hidden: Any, residual: Any = None) -> Any:
        return hidden if residual is None else (hidden, residual)

    found = getattr(import_module(f"vllm.{module}"), name)
    embeds = dict.fromkeys(("embed_input_ids", "embed_tokens", "get_input_embeddings"), embed)
    own = {**embeds, "norm": norm, "norm_f": norm, "_active_layers": property(lambda self: self.layers)}
    made: Any = type(name, (found,), {**ATTRIBUTES, "end_layer": depth, **own})
    held = _unbuilt(made)
    held.layers = torch.nn.ModuleList(Layer(number, outputs) for number in range(1, depth + 1))
    return held


def handed_over(module: str, name: str, outputs: int, depth: int, asked: list[int]) -> Any:
    """After which layers a model took what it hands over."""
    target = model(module, name, outputs, depth)
    if hasattr(target, "_set_aux_hidden_state_layers"):
        target._set_aux_hidden_state_layers(tuple(asked))
    else:  # its causal model writes them as they are
        target.aux_hidden_state_layers = tuple(asked)
    given = {}
    for key, wanted in list(inspect.signature(type(target).forward).parameters.items())[1:]:
        if key in ("input_ids", "positions"):
            given[key] = torch.arange(3)
        elif key == "hidden_states":
            given[key] = torch.zeros(3, WIDTH)
        elif wanted.default is wanted.empty and wanted.kind is not wanted.VAR_KEYWORD:
            given[key] = None
    out = type(target).forward(target, **given)
    taken = out[-1] if isinstance(out, tuple) and isinstance(out[-1], list) else []
    return [int(each[0, 0]) for each in taken]


def interfaces() -> dict[str, bool | None]:
    """Whether each class of a model that generates has the interface, None where it cannot be imported."""
    from vllm.model_executor.models import registry
    from vllm.model_executor.models.interfaces import supports_eagle3

    found: dict[str, bool | None] = {}
    for name in (*registry._TEXT_GENERATION_MODELS, *registry._MULTIMODAL_MODELS):
        try:
            found[name] = supports_eagle3(registry.ModelRegistry.models[name].load_model_cls())
        except ImportError:
            found[name] = None
    return found


def _as_it_is(hidden: Any) -> Any:
    return hidden


def _class_of(architecture: str) -> Any:
    from vllm.model_executor.models.registry import ModelRegistry

    return ModelRegistry.models[architecture].load_model_cls()


def class_of(architecture: str) -> str:
    return str(_class_of(architecture).__name__)


def language_model(architecture: str, part: str, module: str, name: str) -> Any:
    """The class of what a target gives as its language model, and whether that one's code has a `model`.

    `part` is marked as it, as the target's class does it while it is built.
    """
    inner, held = getattr(import_module(f"vllm.{module}"), name), _unbuilt(_class_of(architecture))
    held._language_model_names = [part]
    setattr(held, part, _unbuilt(inner))
    given = type(held.get_language_model())
    return [given.__name__, re.search(r"self\.model = ", inspect.getsource(given)) is not None]


def _unbuilt(found: Any) -> Any:
    held = found.__new__(found)
    torch.nn.Module.__init__(held)
    return held


def joined(architecture: str, fc: int, received: int) -> list[int]:
    """The shape of what a draft's class makes of so many features, of which its `fc` takes another number."""
    found = _class_of(architecture)
    layer = torch.nn.Linear(fc, WIDTH)
    layer.input_size = fc
    inner = SimpleNamespace(
        fc=layer,
        use_aux_hidden_state=True,
        num_aux_slices=fc // WIDTH,
        aux_hidden_norms=[_as_it_is] * (fc // WIDTH),
        hidden_norm=_as_it_is,
    )
    return list(found.combine_hidden_states(SimpleNamespace(model=inner), torch.zeros(3, received)).shape)


def in_the_first_run(speculator: str, fc: int, received: int) -> None:
    """Keep what a target hands over in the first run, as a speculator does."""
    module, _, name = speculator.partition(":")
    found = getattr(import_module(f"vllm.v1.worker.gpu.spec_decode.{module}"), name)
    from vllm.model_executor.models.qwen3_dflash import DFlashQwen3ForCausalLM

    inner = SimpleNamespace(fc=SimpleNamespace(input_size=fc), use_aux_hidden_state=True)
    draft = SimpleNamespace(model=inner)
    draft.combine_hidden_states = lambda hidden: DFlashQwen3ForCausalLM.combine_hidden_states(draft, hidden)
    itself = SimpleNamespace(_aux_staging=None, model=draft, hidden_states=torch.zeros(3, WIDTH))
    features = [torch.zeros(3, WIDTH)] * (received // WIDTH)
    found._store_hidden_states(itself, 3, torch.zeros(3, WIDTH), features)


def asked_by(config: Mapping[str, Any]) -> Any:
    """The layers that a draft's config asks for, as vLLM counts."""
    from vllm.v1.worker.gpu.spec_decode.eagle.eagle3_utils import get_eagle3_aux_layers_from_config

    drafted = SimpleNamespace(draft_model_config=SimpleNamespace(hf_config=SimpleNamespace(**config)))
    return get_eagle3_aux_layers_from_config(drafted)


def picked(depth: int) -> Any:
    """The layers that a target's class is asked for where the config names none."""
    from vllm.model_executor.models.interfaces import SupportsEagle3

    target = SimpleNamespace(model=SimpleNamespace(layers=range(depth)))
    return SupportsEagle3.get_eagle3_default_aux_hidden_state_layers(target)


def inner_takes_layers(module: str, name: str) -> bool:
    from vllm.model_executor.models.interfaces import EagleModelMixin

    return issubclass(getattr(import_module(f"vllm.{module}"), name), EagleModelMixin)


def rows(tokens: int) -> int:
    from vllm.model_executor.layers.vocab_parallel_embedding import pad_vocab_size

    return int(pad_vocab_size(tokens))


def answered(answers: int, head: int) -> list[int]:
    """The shape of the logits of a plain draft with so many answers, whose head gives so many logits."""
    from vllm.model_executor.models.qwen3_dflash import DFlashQwen3ForCausalLM

    draft = SimpleNamespace(
        logits_processor=lambda lm_head, hidden: torch.zeros(len(hidden), head)[..., :answers],
        lm_head=None,
        draft_id_to_target_id=torch.zeros(answers, dtype=torch.long),
        config=SimpleNamespace(draft_vocab_size=answers, vocab_size=answers),
    )
    return list(DFlashQwen3ForCausalLM.compute_logits(draft, torch.zeros(3, WIDTH)).shape)


def embedded(tokens: int, token: int, ranks: int) -> list[float]:
    """The row by which a table of ones embeds a token, on the first of so many ranks."""
    from vllm.config import DeviceConfig, VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers import vocab_parallel_embedding as layers

    be_rank_0_of(ranks)
    layers.tensor_model_parallel_all_reduce = _as_it_is
    try:
        with set_current_vllm_config(VllmConfig(device_config=DeviceConfig("cpu"))):
            table = layers.VocabParallelEmbedding(tokens, WIDTH)
        table.weight_loader(table.weight, torch.ones(tokens, WIDTH))
        row: list[float] = table(torch.tensor([token]))[0].tolist()
        return row
    finally:
        be_rank_0_of(1)


FUNCTIONS = (
    answered,
    asked_by,
    class_of,
    embedded,
    handed_over,
    in_the_first_run,
    inner_takes_layers,
    interfaces,
    joined,
    language_model,
    picked,
    rows,
)


def _answer(function: Callable[..., Any], arguments: list[Any]) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    # vLLM says things of its own, which are no answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    be_rank_0_of(1)
    named = {function.__name__: function for function in FUNCTIONS}
    for line in sys.stdin:
        question, *arguments = json.loads(line)
        print(json.dumps(_answer(named[question], arguments)), file=answers, flush=True)
