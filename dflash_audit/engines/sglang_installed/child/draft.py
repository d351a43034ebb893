"""A draft, from its config to its loaded weights, stage by stage and by SGLang's own classes.

Source: SGLang 0.5.23 `srt/model_loader/loader.py`, `DefaultModelLoader.load_model`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from sglang.srt.configs.load_config import LoadConfig
from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.layers.linear import LinearBase
from sglang.srt.layers.radix_attention import RadixAttention
from sglang.srt.layers.vocab_parallel_embedding import VocabParallelEmbedding
from sglang.srt.model_loader.loader import DefaultModelLoader, _get_quantization_config
from sglang.srt.model_loader.utils import get_model_architecture, set_default_torch_dtype
from sglang.srt.models.dflash import DFlashDraftModel
from sglang.srt.runtime_context import get_parallel
from sglang.srt.server_args import ServerArgs
from sglang.test.parallel_groups import publish

from dflash_audit.engines.installed.child import built
from dflash_audit.engines.installed.child.attempt import OtherFamily
from dflash_audit.engines.installed.child.built import Record, Role


@dataclass
class Draft:
    """One draft of a folder, as `attempt` wants it; `asked` are the modules that were asked about."""

    folder: str
    given: str | None = None
    """The server's --quantization."""
    stage: str = "config"
    model_config: Any = None
    model_class: Any = None
    quant_config: Any = None
    model: Any = None
    asked: list[tuple[Any, str]] = field(default_factory=list)
    loads_anew: bool = False

    @property
    def quantization(self) -> str | None:
        """The method that SGLang settles on, None for a dense draft."""
        return None if self.model_config is None else self.model_config.quantization

    @property
    def config(self) -> Any:
        """The config object that the draft's class is given."""
        return None if self.model_config is None else self.model_config.hf_config

    @property
    def act_order(self) -> bool:
        """Whether what quantizes the draft orders inputs by activations, wherever it is declared."""
        return bool(getattr(self.quant_config, "desc_act", False))

    def settle(self) -> None:
        """The config, the class and the quantization config; raises what SGLang raises."""
        self.model_config = ModelConfig(
            self.folder,
            trust_remote_code=False,
            is_draft_model=True,
            quantization=self.given,
            dtype="bfloat16",
            speculative_algorithm="DFLASH",
        )
        self.stage = "class"
        found, _ = get_model_architecture(self.model_config)
        if not issubclass(found, DFlashDraftModel):
            raise OtherFamily(f"{found.__name__} is no draft of DFlash's family")
        self.model_class = found
        self.stage = "quant_config"
        if self.quantization is not None:
            self.quant_config = _get_quantization_config(self.model_config, LoadConfig())
        if self.quant_config is not None:
            self._listen()

    def build(self, device: str = "cpu") -> None:
        """Build the model in bfloat16, its memory as the allocator gives it."""
        self.stage = "build"
        with set_default_torch_dtype(self.model_config.dtype), torch.device(device):
            self.model = self.model_class(config=self.config, quant_config=self.quant_config)

    def weights(self) -> Iterator[tuple[str, Any]]:
        """Every tensor of the weight files that SGLang picks, in its order."""
        found: Iterator[tuple[str, Any]] = DefaultModelLoader(LoadConfig())._get_all_weights(
            self.model_config, self.model
        )
        return found

    def modules(self) -> Iterator[Record]:
        """What was built."""
        prefixes = {id(layer): prefix for layer, prefix in self.asked}

        def role(module: Any) -> Role:
            linear = isinstance(module, LinearBase)
            return Role(
                prefixes.get(id(module)),
                built.scheme_of(module) if linear or isinstance(module, RadixAttention) else None,
                linear,
                module.org_vocab_size if isinstance(module, VocabParallelEmbedding) else None,
            )

        return built.modules(self.model, role)

    def _listen(self) -> None:
        """Note the name under which the quantization config is asked about each layer."""
        answer = self.quant_config.get_quant_method

        def get_quant_method(layer: Any, prefix: str = "") -> Any:
            self.asked.append((layer, prefix))
            return answer(layer, prefix)

        self.quant_config.get_quant_method = get_quant_method


def serve_one_rank(draft_attention_backend: str | None, **more: Any) -> None:
    """Publish what a server on one rank would, with default flags but for those in `more`."""
    options = {"device": "cpu", "speculative_draft_attention_backend": draft_attention_backend, **more}
    server = ServerArgs(model_path="dummy", **options)
    # The groups of the draft before.
    get_parallel().override_permanently(tp_group=None, attn_tp_group=None)
    publish(server, role="scheduler")
