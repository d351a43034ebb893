"""Stands for vLLM: a draft of an embedding, a projector, a fused layer, an attention and a norm.

What the child hands it, it shows: the target's numbers in shapes and prefixes, the method and the
tokens in what it says to a config that has `tell`.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from transformers import dynamic_module_utils

__version__ = "9.9.9"

Weights = Iterable[tuple[str, "Tensor"]]


class Tensor:
    """A shape at an address."""

    dtype = "torch.bfloat16"
    end = 1 << 20

    def __init__(self, *shape: int) -> None:
        self.shape, self.nbytes, self.at, self.data = shape, 2, Tensor.end, self
        Tensor.end += 2

    def data_ptr(self) -> int:
        return self.at

    def new_empty(self, size: int) -> "Tensor":
        return Tensor(size)


class Module:
    """A module: its parameters and those below it, in order."""

    def __init__(self, prefix: str = "", **parameters: Tensor) -> None:
        self.prefix, self.own, self.below = prefix, parameters, dict[str, Module]()

    def named_modules(self, name: str = "") -> Iterator[tuple[str, "Module"]]:
        yield name, self
        for inner, module in self.below.items():
            yield from module.named_modules(f"{name}.{inner}" if name else inner)

    def modules(self) -> Iterator["Module"]:
        for _, module in self.named_modules():
            yield module

    def named_parameters(self, recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        for name, module in self.named_modules() if recurse else [("", self)]:
            for own, parameter in module.own.items():
                yield f"{name}.{own}" if name else own, parameter


class Unquantized:
    """A method."""


class LinearBase(Module):
    quant_method = Unquantized()

    def __init__(self, prefix: str, inputs: int, *outputs: int) -> None:
        super().__init__(prefix, weight=Tensor(sum(outputs), inputs))
        self.input_size, self.output_sizes = inputs, outputs


class VocabParallelEmbedding(Module):
    quant_method = Unquantized()

    def __init__(self, prefix: str, tokens: int, size: int) -> None:
        super().__init__(prefix, weight=Tensor(tokens, size))
        self.org_vocab_size = tokens


class AttentionLayerBase(Module):
    """Has no method without a quantized cache; makes a buffer on a new card."""

    def __init__(self) -> None:
        super().__init__()
        here = sys.modules[__name__]
        if here.platforms._current_platform.get_device_capability() >= (10, 0):
            here.v1.attention.backends.flashinfer._get_multi_ctas_kv_counter_buffer(1, "cuda")


def on_the_card(size: int, device: str) -> None:
    raise RuntimeError("Found no NVIDIA driver on your system")


class DeviceCapability(NamedTuple):
    major: int
    minor: int


class DFlashQwen3ForCausalLM(Module):
    def __init__(self, config: Any, target: dict[str, Any]) -> None:
        super().__init__()
        size, layer = config.hidden_size, target["num_hidden_layers"]
        self.below["model"] = inner = Module()
        inner.below["embed_tokens"] = VocabParallelEmbedding("model.embed_tokens", target["vocab_size"], size)
        inner.below["qkv_proj"] = LinearBase(f"model.layers.{layer}.qkv_proj", size, size, size, size)
        inner.below["attn"] = AttentionLayerBase()
        inner.below["fc"] = LinearBase("model.fc", target["hidden_size"], size)
        inner.below["norm"] = Module(weight=Tensor(size))

    def load_weights(self, weights: Weights) -> None:
        AutoWeightsLoader(self).load_weights([(f"model.{name}", tensor) for name, tensor in weights])
        self._build_fused_kv_buffers()

    def _build_fused_kv_buffers(self) -> None:
        raise RuntimeError("this needs a GPU")


class AutoWeightsLoader:
    def __init__(self, module: Module) -> None:
        self.parameters = dict(module.named_parameters())

    def load_weights(self, weights: Weights, *, mapper: None = None) -> None:
        del mapper
        for name, tensor in weights:
            shard = next((s for s in "qkv" if name.endswith(f".{s}_proj.weight")), None)
            if shard is not None:
                name = "model.qkv_proj.weight"
            if name not in self.parameters:
                raise ValueError(f"There is no module or parameter named {name!r}")
            parameter: Any = self.parameters[name]
            parameter.weight_loader(parameter, tensor, *([shard] if shard else []))


def default_weight_loader(parameter: Tensor, tensor: Tensor, shard: str | None = None) -> None:
    if shard is None and parameter.shape != tensor.shape:
        raise ValueError(f"Attempted to load {tensor.shape} into {parameter.shape}")


class Hidden(ValueError):
    """An error around another, as pydantic makes it."""

    def __init__(self, error: Exception) -> None:
        super().__init__("1 validation error for SpeculativeConfig")
        self.error = error

    def errors(self) -> list[dict[str, Any]]:
        return [{"type": "missing"}, {"ctx": {"error": self.error}}]


class EngineArgs:
    def __init__(self, model: str, speculative_config: dict[str, Any], **more: Any) -> None:
        assert more["load_format"] == "dummy" and "trust_remote_code" not in more
        self.target, self.speculative = model, speculative_config

    def create_engine_config(self) -> Any:
        assert os.environ["HF_HUB_OFFLINE"] == "1"
        folder = self.speculative["model"]
        config = json.loads(Path(folder, "config.json").read_text())
        try:
            self._check(config, folder)
        except Exception as error:
            raise Hidden(error) from None
        draft = SimpleNamespace(quantization=None, hf_config=SimpleNamespace(**config), model=folder)
        target = json.loads(Path(self.target, "config.json").read_text())
        speculative = SimpleNamespace(draft_model_config=draft)
        return SimpleNamespace(speculative_config=speculative, target=target)

    def _check(self, config: dict[str, Any], folder: str) -> None:
        if "auto_map" in config:
            dynamic_module_utils.get_class_in_module("Config", f"{folder}/{config['auto_map']}")
        if config.get("tell"):
            raise ValueError(f"{self.speculative['method']} {self.speculative['num_speculative_tokens']}")
        resolve_model_cls(config["architectures"])


def resolve_model_cls(architectures: list[str]) -> type[Module]:
    if architectures == ["K3DSparkModel"]:
        return type("K3DSparkForCausalLM", (Module,), {})
    if architectures != ["DFlashDraftModel"]:
        raise ValueError(f"Model architectures {architectures} are not supported for now.")
    return DFlashQwen3ForCausalLM


def get_model_architecture(config: Any) -> tuple[type[Module], str]:
    architectures = config.hf_config.architectures
    return resolve_model_cls(architectures), architectures[0]


def get_draft_quant_config(config: Any) -> None:
    if getattr(config, "quantization_config", None) is not None:
        raise ValueError("the quantization config is odd")


def initialize_model(vllm_config: Any, model_config: Any) -> Module:
    get_draft_quant_config(model_config.hf_config)
    if getattr(model_config.hf_config, "num_hidden_layers", 1) > 1 << 30:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate much")
    return DFlashQwen3ForCausalLM(model_config.hf_config, vllm_config.target)


class LoadConfig:
    def __init__(self, use_tqdm_on_load: bool) -> None:
        assert not use_tqdm_on_load


class DefaultModelLoader:
    def __init__(self, config: LoadConfig) -> None:
        del config

    def get_all_weights(self, config: Any, model: Module) -> Iterator[tuple[str, Tensor]]:
        del model
        print("a progress bar on standard output")
        for path in sorted(Path(config.model).glob("*.safetensors")):
            with open(path, "rb") as file:
                header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            for name, entry in header.items():
                if name != "__metadata__":
                    yield name, Tensor(*entry["shape"])


@contextmanager
def set_current_vllm_config(config: Any) -> Iterator[None]:
    del config
    yield


class NonNvmlCudaPlatform:
    """Of which the child makes its own."""


def offer(name: str, **held: Any) -> None:
    """A module below this package, with what it holds."""
    module = ModuleType(f"{__name__}.{name}")
    vars(module).update(held)
    sys.modules[module.__name__] = module
    parent, _, last = module.__name__.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)


offer("platforms")
offer("platforms.cuda", NonNvmlCudaPlatform=NonNvmlCudaPlatform)
offer("platforms.interface", DeviceCapability=DeviceCapability)
offer("distributed", parallel_state=SimpleNamespace())
offer("transformers_utils", repo_utils=SimpleNamespace())
offer("v1")
offer("v1.attention")
offer("v1.attention.backends")
offer("v1.attention.backends.flashinfer", _get_multi_ctas_kv_counter_buffer=on_the_card)
offer("config", set_current_vllm_config=set_current_vllm_config)
offer("config.load", LoadConfig=LoadConfig)
offer("engine")
offer("engine.arg_utils", EngineArgs=EngineArgs)
offer("model_executor")
offer("model_executor.layers")
offer("model_executor.layers.rotary_embedding", _ROPE_DICT={})
offer("model_executor.layers.attention_layer_base", AttentionLayerBase=AttentionLayerBase)
offer("model_executor.layers.linear", LinearBase=LinearBase)
offer("model_executor.layers.vocab_parallel_embedding", VocabParallelEmbedding=VocabParallelEmbedding)
offer("model_executor.model_loader")
offer("model_executor.model_loader.default_loader", DefaultModelLoader=DefaultModelLoader)
offer(
    "model_executor.model_loader.utils",
    get_model_architecture=get_model_architecture,
    initialize_model=initialize_model,
)
offer("model_executor.model_loader.weight_utils", default_weight_loader=default_weight_loader)
offer("model_executor.models")
offer(
    "model_executor.models.utils",
    AutoWeightsLoader=AutoWeightsLoader,
    get_draft_quant_config=get_draft_quant_config,
)
