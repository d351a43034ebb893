"""A draft, from its config to its loaded weights, stage by stage and by vLLM's own classes.

Source: vLLM 0.33.0 `engine/arg_utils.py`, `config/speculative.py`,
`model_executor/model_loader/utils.py` and `default_loader.py`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from vllm.config import set_current_vllm_config
from vllm.config.load import LoadConfig
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.layers import rotary_embedding
from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase
from vllm.model_executor.layers.linear import LinearBase
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding
from vllm.model_executor.model_loader.default_loader import DefaultModelLoader
from vllm.model_executor.model_loader.utils import get_model_architecture, initialize_model
from vllm.model_executor.models.utils import get_draft_quant_config

from dflash_audit.engines.installed.child import built
from dflash_audit.engines.installed.child.attempt import OtherFamily
from dflash_audit.engines.installed.child.built import Record, Role
from dflash_audit.engines.vllm.architectures import GEMMA4
from dflash_audit.engines.vllm.gemma4 import FILLED_BUFFERS
from dflash_audit.engines.vllm_installed.child.stages import cause, stage_of
from dflash_audit.engines.vllm_installed.child.target import target_folder

BESIDE_ITS_TARGET: Final = frozenset(
    (
        "DSparkDeepseekV4ForCausalLM",
        "K3DSparkForCausalLM",
        "MuseSparkDSparkForCausalLM",
    )
)
"""Classes that build a part of their own target, so that no other will do.

Source: vLLM 0.33.0 `model_executor/models/registry.py`.
"""


EXPERTS: Final = "RoutedExperts"
"""The class of a mixture's experts, of a module that is slow to import."""


@dataclass
class Draft:
    """One draft of a folder, as `attempt` wants it.

    It is served with `method` and so many `tokens` at once, beside a target of these numbers.
    """

    folder: str
    method: str
    tokens: int
    target: Mapping[str, int]
    stage: str = "config"
    server: Any = None
    model_class: Any = None
    model: Any = None
    loads_anew: bool = True
    act_order: bool = False
    """No draft of vLLM's is loaded with an order by activations."""

    @property
    def _drafted(self) -> Any:
        return None if self.server is None else self.server.speculative_config.draft_model_config

    @property
    def quantization(self) -> str | None:
        """The method that vLLM settles on, None for a dense draft."""
        return None if self._drafted is None else self._drafted.quantization

    @property
    def config(self) -> Any:
        """The config object that the draft's class is given."""
        return None if self._drafted is None else self._drafted.hf_config

    def settle(self) -> None:
        """The config and the class; raises what vLLM raises."""
        try:
            with target_folder(self.target) as target:
                self.server = self._arguments(target).create_engine_config()
            self.stage = "class"
            with set_current_vllm_config(self.server):
                found, _ = get_model_architecture(self._drafted)
        except Exception as error:
            raised = cause(error)
            self.stage = stage_of(raised, self.stage)
            raise raised from None
        if found.__name__ in BESIDE_ITS_TARGET:
            raise OtherFamily(f"{found.__name__} is built as a part of its own target")
        self.model_class = found

    def _arguments(self, target: str) -> EngineArgs:
        speculative = {"method": self.method, "model": self.folder, "num_speculative_tokens": self.tokens}
        return EngineArgs(
            model=target,
            skip_tokenizer_init=True,
            load_format="dummy",
            enforce_eager=True,
            dtype="bfloat16",
            max_model_len=1024,
            speculative_config=speculative,
        )

    def build(self) -> None:
        """Build the model in bfloat16, its memory as the allocator gives it."""
        self.stage = "build"
        # A server makes its own; here an earlier draft may have left one that is equal, as 1 is to true.
        rotary_embedding._ROPE_DICT.clear()
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.bfloat16)
        try:
            if self.model_class.__name__ == GEMMA4:
                # As `load_dspark_model` does: this class builds with what the server has.
                self.server.quant_config = get_draft_quant_config(self.server)
            with set_current_vllm_config(self.server):
                self.model = initialize_model(vllm_config=self.server, model_config=self._drafted)
        except Exception as error:
            self.stage = stage_of(error, self.stage)
            raise
        finally:
            torch.set_default_dtype(before)
        _leave_out_what_follows_the_load(self.model)
        if self.model_class.__name__ == GEMMA4:
            _count_buffers(self.model)

    def weights(self) -> Iterator[tuple[str, Any]]:
        """Every tensor of the weight files that vLLM picks, in its order."""
        loader = DefaultModelLoader(LoadConfig(use_tqdm_on_load=False))
        found: Iterator[tuple[str, Any]] = loader.get_all_weights(self._drafted, self.model)
        return found

    def modules(self) -> Iterator[Record]:
        """What was built."""
        return built.modules(self.model, _role)


def _count_buffers(model: Any) -> None:
    """Make parameters of the buffers that a Gemma 4 draft's loader fills as it fills parameters."""
    for module in model.modules():
        for name in FILLED_BUFFERS:
            buffer = module._buffers.pop(name, None)
            if buffer is not None:
                module.register_parameter(name, torch.nn.Parameter(buffer, requires_grad=False))


def _role(module: Any) -> Role:
    if isinstance(module, LinearBase):
        return Role(module.prefix, _scheme(module), linear=True)
    if isinstance(module, VocabParallelEmbedding):
        return Role(module.prefix, _scheme(module), tokens=module.org_vocab_size)
    if type(module).__name__ == EXPERTS:
        return Role(module.layer_name, built.scheme_of(module))
    return Role(None, built.scheme_of(module) if isinstance(module, AttentionLayerBase) else None)


def _scheme(module: Any) -> str | None:
    """As `scheme_of`; of AutoRound's method, which is another's in a wrapping, the other's.

    Source: vLLM 0.33.0 `layers/quantization/inc/inc_linear.py`, `inc/schemes/inc_wna16_linear.py`.
    """
    inner = getattr(getattr(module.quant_method, "scheme", None), "linear_method", None)
    return built.scheme_of(module) if inner is None else type(inner).__name__


def _leave_out_what_follows_the_load(model: Any) -> None:
    """The load is over when buffers are fused for the GPU."""
    for module in model.modules():
        if hasattr(module, "_build_fused_kv_buffers"):
            module._build_fused_kv_buffers = lambda *_, **__: None
