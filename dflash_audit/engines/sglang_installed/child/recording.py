"""One draft's record: what SGLang built, loaded, dropped and refused."""

import os
import traceback
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

import torch
from sglang.srt.layers.linear import LinearBase
from sglang.srt.layers.radix_attention import RadixAttention
from sglang.srt.layers.vocab_parallel_embedding import VocabParallelEmbedding

from dflash_audit.engines.sglang_installed.child.draft import Draft, OtherFamily, serve_one_rank
from dflash_audit.engines.sglang_installed.child.watch import Watch, torch_name

Record = dict[str, Any]

SINKS_BACKEND: Final = "trtllm_mha"
BACKEND_FLAG: Final = "--speculative-draft-attention-backend"
"""Source: SGLang 0.5.23 `srt/models/dflash.py`, `DFlashAttention.__init__`."""


def prepare() -> None:
    """What has to hold before the first draft."""
    serve_one_rank(None)


def record(folder: str, quantization: str | None, attention_backend: str | None) -> Record:
    """What the installed SGLang does with the draft of a folder.

    `stage` is where it stops, `error` what it says and `at_tensor` the tensor in its
    hands. With `complete` every tensor had its turn: a refused one is among `refusals`
    and the load went on behind it. A class that lists all tensors before it loads
    the first stops for good.
    """
    found = _attempt(folder, quantization, attention_backend)
    if found["stage"] == "build" and attention_backend is None:
        # Attention sinks are refused for the lack of a flag, not for the draft.
        again = _attempt(folder, quantization, SINKS_BACKEND)
        if again["stage"] != "build":
            return {**again, "flags": [[f"{BACKEND_FLAG} {SINKS_BACKEND}", found["error"]]]}
    return found


def _attempt(folder: str, quantization: str | None, attention_backend: str | None) -> Record:
    serve_one_rank(attention_backend)
    draft, watch = Draft(folder, quantization), Watch()
    refusals: list[tuple[str, str | None]] = []
    skipped = None
    modules = None
    try:
        draft.settle()
        draft.build()
        modules = list(_modules(draft))
        watch.attach(draft.model)
        refusals = _load(draft, watch)
    except OtherFamily as other:
        skipped = str(other)
    except MemoryError:
        raise
    except Exception as error:  # whatever it is, it is what the engine says
        refusals = [(_said(error), None)]
    first, tensor = refusals[0] if refusals else (None, None)
    return {
        "class": draft.model_class.__name__ if draft.model_class else None,
        "quantization": draft.config.quantization if draft.config else None,
        "skipped": skipped,
        "stage": draft.stage if refusals else None,
        "error": first,
        "at_tensor": tensor,
        "config": _attributes(draft.config.hf_config) if draft.config else None,
        "packed_modules_mapping": getattr(draft.model_class, "packed_modules_mapping", {}),
        "flags": [],
        "modules": modules,
        "reads": watch.reads,
        "fills": watch.fills,
        "refusals": refusals if draft.stage == "load" else [],
        "complete": not refusals or (watch.ended and not watch.listed),
    }


def _load(draft: Draft, watch: Watch) -> list[tuple[str, str | None]]:
    """Load, and after a tensor that is refused go on with the next; what was refused, with the tensor.

    A check at the end of the load counts only where nothing was refused before it:
    else it would tell of the consequences.
    """
    weights = draft.weights()
    refusals: list[tuple[str, str | None]] = []
    while not watch.ended:
        try:
            draft.model.load_weights(watch.read(weights))
        except MemoryError:
            raise
        except Exception as error:
            if not (refusals and watch.ended):
                refusals.append((_said(error), watch.in_hand))
            if watch.broken:
                break
    return refusals


def _said(error: Exception) -> str:
    """What the engine says, in a line; of a bare assertion, where it stands."""
    text = " ".join(str(error).split())[:600]
    if text:
        return f"{type(error).__name__}: {text}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {os.path.basename(last.filename)}:{last.lineno}: {last.line}"


def _modules(draft: Draft) -> Iterator[Record]:
    prefixes = {id(layer): prefix for layer, prefix in draft.asked}
    seen: set[int] = set()
    for name, module in draft.model.named_modules():
        own = [(n, p) for n, p in module.named_parameters(recurse=False) if id(p) not in seen]
        seen.update(id(parameter) for _, parameter in own)
        yield {
            "name": name,
            "class": type(module).__name__,
            "prefix": prefixes.get(id(module)),
            "scheme": _scheme(module),
            "linear": _linear(module) if isinstance(module, LinearBase) else None,
            "parameters": [_parameter(module, n, p) for n, p in own],
        }


def _scheme(module: Any) -> str | None:
    if not isinstance(module, LinearBase | RadixAttention):
        return None
    method = getattr(module, "scheme", None) or getattr(module, "quant_method", None)
    return None if method is None else type(method).__name__


def _linear(module: Any) -> Record:
    outputs = list(getattr(module, "output_sizes", None) or [module.output_size])
    return {
        "inputs": module.input_size,
        "outputs": outputs,
        "inputs_here": getattr(module, "input_size_per_partition", module.input_size),
        "outputs_here": list(getattr(module, "output_partition_sizes", None) or outputs),
    }


def _parameter(module: Any, name: str, parameter: Any) -> Record:
    vocabulary = isinstance(module, VocabParallelEmbedding) and name == "weight"
    return {
        "name": name,
        "shape": list(parameter.shape),
        "dtype": torch_name(parameter.dtype),
        "kind": type(parameter).__name__,
        "output_dim": _whole(getattr(parameter, "output_dim", None)),
        "input_dim": _whole(getattr(parameter, "input_dim", None)),
        "packed_dim": _whole(getattr(parameter, "packed_dim", None)),
        "packed_factor": _ratio(getattr(parameter, "packed_factor", None)),
        "tokens": module.org_vocab_size if vocabulary else None,
    }


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _ratio(value: Any) -> tuple[int, int] | None:
    return Fraction(value).as_integer_ratio() if isinstance(value, int | float | Fraction) else None


def _attributes(value: Any) -> Any:
    """A config, its parts too, as JSON."""
    if isinstance(value, Mapping):
        return {str(key): _attributes(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_attributes(inner) for inner in value]
    if isinstance(value, torch.dtype):
        return torch_name(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    inner = getattr(value, "__dict__", None)
    return str(value) if inner is None else _attributes(inner)
