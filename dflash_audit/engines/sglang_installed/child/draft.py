"""A draft, from its config to its loaded weights, stage by stage and by SGLang's own classes.

Source: SGLang 0.5.23 `srt/model_loader/loader.py`, `DefaultModelLoader.load_model`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from sglang.srt.configs.load_config import LoadConfig
from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.model_loader.loader import DefaultModelLoader, _get_quantization_config
from sglang.srt.model_loader.utils import get_model_architecture, set_default_torch_dtype
from sglang.srt.models.dflash import DFlashDraftModel
from sglang.srt.runtime_context import get_parallel
from sglang.srt.server_args import ServerArgs
from sglang.test.parallel_groups import publish


class OtherFamily(Exception):
    """The engine has this class, and it is no draft of DFlash's family."""


@dataclass
class Draft:
    """One draft of a folder. `stage` is the one that is on, `asked` the modules that were asked about."""

    folder: str
    quantization: str | None = None
    stage: str = "config"
    config: Any = None
    model_class: Any = None
    quant_config: Any = None
    model: Any = None
    asked: list[tuple[Any, str]] = field(default_factory=list)

    def settle(self) -> None:
        """The config, the class and the quantization config; raises what SGLang raises."""
        self.config = ModelConfig(
            self.folder,
            trust_remote_code=False,
            is_draft_model=True,
            quantization=self.quantization,
            dtype="bfloat16",
            speculative_algorithm="DFLASH",
        )
        self.stage = "class"
        found, _ = get_model_architecture(self.config)
        if not issubclass(found, DFlashDraftModel):
            raise OtherFamily(f"{found.__name__} is no draft of DFlash's family")
        self.model_class = found
        self.stage = "quant_config"
        if self.config.quantization is not None:
            self.quant_config = _get_quantization_config(self.config, LoadConfig())
        if self.quant_config is not None:
            self._listen()

    def build(self, device: str = "cpu") -> None:
        """Build the model in bfloat16, its memory as the allocator gives it."""
        self.stage = "build"
        with set_default_torch_dtype(self.config.dtype), torch.device(device):
            self.model = self.model_class(config=self.config.hf_config, quant_config=self.quant_config)

    def weights(self) -> Iterator[tuple[str, Any]]:
        """Every tensor of the weight files that SGLang picks, in its order."""
        self.stage = "load"
        found: Iterator[tuple[str, Any]] = DefaultModelLoader(LoadConfig())._get_all_weights(
            self.config, self.model
        )
        return found

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
