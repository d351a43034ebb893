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
disk. If the draft has no such module, restore the config key that builds it (`conv_kernel_size`,
`attention_bias`, another class), or remove the tensor.
"""

from collections.abc import Iterator

from dflash_audit.checkpoint import Tensor
from dflash_audit.drops import dropped, owner
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import fold
from dflash_audit.tree import Module


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding for all layers of a dropped tensor."""
    tensors = {tensor.name: tensor for tensor in dropped(run)}
    for subject, names in fold(tensors).items():
        tensor = tensors[names[0]]
        module = owner(run.tree.modules, tensor.name) if run.tree else None
        yield Finding(
            rule="dropped-tensor",
            severity="error",
            engine=run.engine,
            subject=subject,
            message=_message(run, tensor, module),
            hint=_hint(run, tensor, module),
            subjects=names,
        )


def _message(run: EngineRun, tensor: Tensor, module: Module | None) -> str:
    fact = f"{tensor.dtype} {list(tensor.shape)} is dropped without a word by {run.engine}: "
    if module is None:
        return fact + f"{run.model_class} has no module of this name."
    return fact + f"{_built(module)}."


def _built(module: Module) -> str:
    names = ", ".join(parameter.name for parameter in module.parameters) or "no parameters"
    asked = f", for it asks the quantization config about {module.prefix!r}" if module.prefix else ""
    return f"{module.name} is built with {names}{asked}"


def _hint(run: EngineRun, tensor: Tensor, module: Module | None) -> str:
    if module is None:
        return "Rename the tensor, restore the config key that builds its module, or remove it."
    quantized = any(parameter.name != "weight" for parameter in module.parameters if parameter.name != "bias")
    dense_on_disk = tensor.name.endswith(".weight") and tensor.dtype in ("BF16", "F16", "F32")
    if quantized and dense_on_disk:
        name = module.name.rpartition(".")[2]
        return f"Add an ignore entry that matches {module.prefix!r}, such as re:.*{name}$, or quantize it."
    if not quantized and tensor.name.rpartition(".")[2] not in ("weight", "bias"):
        return f"{run.engine} builds {module.name} dense: leave it out of the recipe, and ignore it."
    return "Remove the tensor, or restore the config key under which the module has this parameter."
