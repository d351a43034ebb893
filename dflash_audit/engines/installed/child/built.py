"""What was built, module by module, as JSON."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any, NamedTuple

Record = dict[str, Any]


class Role(NamedTuple):
    """What a package's class makes of a module.

    `prefix` is the name under which the quantization config is asked about it, `scheme`
    the class of its scheme or method, `linear` whether it is one of the package's linears,
    `tokens` the rows that a vocabulary's tensor must have.
    """

    prefix: str | None = None
    scheme: str | None = None
    linear: bool = False
    tokens: int | None = None


def modules(model: Any, role: Callable[[Any], Role]) -> Iterator[Record]:
    """Every module in the order of the model, each parameter once."""
    seen: set[int] = set()
    for name, module in model.named_modules():
        own = [(n, p) for n, p in module.named_parameters(recurse=False) if id(p) not in seen]
        seen.update(id(parameter) for _, parameter in own)
        told = role(module)
        yield {
            "name": name,
            "class": type(module).__name__,
            "prefix": told.prefix,
            "scheme": told.scheme,
            "linear": _linear(module) if told.linear else None,
            "parameters": [_parameter(told, n, p) for n, p in own],
        }


def scheme_of(module: Any) -> str | None:
    """The class of a layer's scheme, or of its method where it has none."""
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


def _parameter(told: Role, name: str, parameter: Any) -> Record:
    return {
        "name": name,
        "shape": list(parameter.shape),
        "dtype": torch_name(parameter.dtype),
        "kind": type(parameter).__name__,
        "output_dim": _whole(getattr(parameter, "output_dim", None)),
        "input_dim": _whole(getattr(parameter, "input_dim", None)),
        "packed_dim": _whole(getattr(parameter, "packed_dim", None)),
        "packed_factor": _ratio(getattr(parameter, "packed_factor", None)),
        "tokens": told.tokens if name == "weight" else None,
    }


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _ratio(value: Any) -> tuple[int, int] | None:
    return Fraction(value).as_integer_ratio() if isinstance(value, int | float | Fraction) else None


def attributes(value: Any) -> Any:
    """A config, its parts too, as JSON; a dtype by torch's name for it."""
    if isinstance(value, Mapping):
        return {str(key): attributes(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [attributes(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    inner = getattr(value, "__dict__", None)
    return torch_name(value) if inner is None else attributes(inner)


def give_back_memory(model: Any) -> None:
    """Take the numbers out of a model: its parts hold each other, and are not gone when it is."""
    for _, parameter in model.named_parameters():
        with suppress(ValueError):  # vLLM's parameters that are shared have no data of their own
            parameter.data = parameter.data.new_empty(0)


def torch_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
