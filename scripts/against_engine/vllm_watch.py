"""Notes what reaches the parameters of a draft while vLLM loads it."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

FOLDED: Final = "xpress_head.mix.L"
"""The tensor of an XPress draft that is folded. Source: vLLM 0.33.0 `qwen3_xpress.py`, `load_weights`."""

MASK_EMBEDDING: Final = "model.mask_embedding"
"""The parameter that a file beside the weights fills, `mask_embedding.pt`: no tensor of the checkpoint does.

Source: vLLM 0.33.0 `qwen3_dflash.py`, `_read_mask_embedding`.
"""


@dataclass
class Watch:
    """What a load did: `targets` of each tensor, with their shards, and what each parameter `took`.

    `held` keeps the tensors, so that no id and no address is used again.
    """

    tensors: list[str] = field(default_factory=list)
    held: list[Any] = field(default_factory=list)
    targets: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    casts: list[tuple[str, str, str, str]] = field(default_factory=list)
    took: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _loading: int = 0
    """How many weight loaders deep it is: one that calls another tells of one fill."""

    def read(self, weights: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        for name, tensor in weights:
            self.tensors.append(name)
            self.held.append(tensor)
            yield name, tensor

    def attach(self, model: Any) -> None:
        """Wrap the weight loader of every parameter, and the one of those that have none."""
        for name, parameter in model.named_parameters():
            if hasattr(parameter, "_weight_loader"):  # a read-only property gives it
                parameter._weight_loader = self._loader(name, parameter.weight_loader)
            elif hasattr(parameter, "weight_loader"):
                parameter.weight_loader = self._loader(name, parameter.weight_loader)
        self._replace_default(model)
        for name, module in model.named_modules():
            if hasattr(module, "fold_from_raw_"):
                module.fold_from_raw_ = self._folder(f"{name}.mix_L", module.mix_L, module.fold_from_raw_)

    def _folder(self, name: str, parameter: Any, fold: Callable[[Any], None]) -> Callable[[Any], None]:
        """The one parameter of an XPress draft that no loader fills; its tensor may have been cast."""

        def watched(tensor: Any) -> None:
            raw = self.held[self.tensors.index(FOLDED)]
            fold(tensor)
            self._note(name, parameter, raw, None)

        return watched

    def _replace_default(self, model: Any) -> None:
        """Every module of vLLM holds the default loader under its own name."""
        original = _default_loader()

        def default(parameter: Any, tensor: Any, *args: Any) -> Any:
            name = _name_of(parameter, model)
            return self._loader(name or self.tensors[-1], original)(parameter, tensor, *args)

        for module_name, module in [*sys.modules.items()]:
            if module_name.startswith("vllm") and "default_weight_loader" in vars(module):
                vars(module)["default_weight_loader"] = default

    def _loader(self, name: str, load: Callable[..., Any]) -> Callable[..., Any]:
        def watched(parameter: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._loading:
                shard = args[0] if args else kwargs.get("loaded_shard_id", kwargs.get("shard_id"))
                self._note(name, parameter, tensor, shard)
            self._loading += 1
            try:
                return load(parameter, tensor, *args, **kwargs)
            finally:
                self._loading -= 1

        return watched

    def _note(self, name: str, parameter: Any, tensor: Any, shard: Any) -> None:
        source = self._held(tensor)
        if source is None and name == MASK_EMBEDDING:
            return
        source = source or self.tensors[-1]  # what was made of one is of the last read
        self.targets[source].add(name if shard is None else f"{name}[{shard}]")
        self.took[name] += tensor.numel()
        if tensor.dtype != parameter.dtype:
            self.casts.append((source, torch_name(tensor.dtype), name, torch_name(parameter.dtype)))

    def _held(self, tensor: Any) -> str | None:
        """The checkpoint's tensor that this is, or a part of."""
        for place, held in enumerate(self.held):
            if held is tensor:
                return self.tensors[place]
        address = tensor.data_ptr()
        for place, held in enumerate(self.held):
            if held.data_ptr() <= address < held.data_ptr() + held.numel() * held.element_size():
                return self.tensors[place]
        return None


def _default_loader() -> Callable[..., Any]:
    """vLLM's own, however many drafts were watched before."""
    from vllm.model_executor.model_loader import weight_utils

    original: Callable[..., Any] = getattr(
        weight_utils, "dflash_audit_original", weight_utils.default_weight_loader
    )
    weight_utils.dflash_audit_original = original
    return original


def _name_of(parameter: Any, model: Any) -> str | None:
    """The name of a parameter, also where the loader was handed another view of it."""
    for name, known in (*model.named_parameters(), *model.named_buffers()):
        # One on the meta device has the address 0.
        if known is parameter or (known.data_ptr() and known.data_ptr() == parameter.data_ptr()):
            return str(name)
    return None


def torch_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
