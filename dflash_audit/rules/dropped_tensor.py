r"""A tensor goes nowhere, and nothing excuses it.

The engine passes over a name that it has no parameter for, without a word.

## Why it matters

The weights in the tensor are not used, and the parameter that they were meant for keeps whatever was in its
memory. The server starts, and accepts no draft token.

## Example

Before: the recipe left q, k and v dense by the names of the checkpoint. SGLang 0.5.23 asks about
`qkv_proj`, finds no entry for it, and builds the layer quantized; the three dense tensors have no place in
it.

    "ignore": ["re:.*self_attn\\.(q|k|v)_proj$"]

After, for both versions:

    "ignore": ["re:.*self_attn\\.(q|k|v)_proj$", "re:.*qkv_proj$"]

## How to fix

If the module is built in another layout than its tensor has, make the quantization config say what is on
disk, or restore it where it was lost. If the draft has no such module, restore the config key that builds it
(`conv_kernel_size`, `attention_bias`, another class), or remove the tensor.
"""

from collections.abc import Iterator, Mapping

from dflash_audit.diagnosis.lost_config import restore
from dflash_audit.diagnosis.stopped import elsewhere
from dflash_audit.drops import dropped
from dflash_audit.dtypes import DENSE_FLOATS, TORCH
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import kind, pattern, title
from dflash_audit.once import once
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.tree import Module


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding for what is dropped of one kind of module, in all layers."""
    for tensors in _groups(run):
        yield _finding(run, tensors, _module(run, tensors[0]))


def mends(run: EngineRun) -> Mapping[str, str]:
    """Module -> the mend of what is dropped of it, which fills it too."""
    hints = ((tensors, _hint(run, tensors[0])) for tensors in _groups(run))
    owned = ((_module(run, tensor), hint) for tensors, hint in hints for tensor in tensors)
    return {module.name: hint for module, hint in owned if module is not None}


@once
def _groups(run: EngineRun) -> list[list[Tensor]]:
    """What is dropped, by kinds of modules."""
    groups: dict[str, list[Tensor]] = {}
    for tensor in dropped(run):
        module = _module(run, tensor)
        of = tensor.name.rpartition(".")[0] if module is None else module.name
        groups.setdefault(kind(of), []).append(tensor)
    return [*groups.values()]


def _module(run: EngineRun, tensor: Tensor) -> Module | None:
    return run.tree.modules.owner(tensor.name) if run.tree else None


def _finding(run: EngineRun, tensors: list[Tensor], module: Module | None) -> Finding:
    names = tuple(tensor.name for tensor in tensors)
    dtypes = ", ".join(dict.fromkeys(tensor.dtype for tensor in tensors))
    those = f"The tensor ({dtypes}) goes" if len(names) == 1 else f"{len(names)} tensors ({dtypes}) go"
    return Finding(
        rule="dropped-tensor",
        severity="error",
        engine=run.engine,
        subject=title(names),
        message=f"{those} nowhere, without a word: {_why(run, module)}.",
        hint=elsewhere(run) or _hint(run, tensors[0]),
        subjects=names,
    )


def _why(run: EngineRun, module: Module | None) -> str:
    if module is None:
        return f"{run.model_class} has no module of this name as {run.engine} builds it"
    has = ", ".join(parameter.name for parameter in module.parameters) or "no parameters"
    asked = f", having asked the quantization config about {module.prefix!r}" if module.prefix else ""
    return f"{run.engine} builds {pattern(module.name).replace('{}', 'N')} with {has}{asked}"


def _hint(run: EngineRun, tensor: Tensor) -> str:
    module = _module(run, tensor)
    if module is None:
        return "Rename the tensor, restore the config key that builds its module, or remove it."
    leaf = tensor.name.rpartition(".")[2]
    dense = leaf == "weight" and TORCH.get(tensor.dtype) in DENSE_FLOATS
    if dense and any(parameter.name not in ("weight", "bias") for parameter in module.parameters):
        name = module.name.rpartition(".")[2]
        return f"Add an ignore entry that matches {module.prefix!r}, such as re:.*{name}$, or quantize it."
    if lost := restore(run, tensor.name):
        return lost
    if leaf not in ("weight", "bias") and run.quantization is not None:
        return "Quantize again, with this layer in the ignore list of the recipe, so that it stays bfloat16."
    return "Remove the tensor, or restore the config key under which the module has this parameter."
