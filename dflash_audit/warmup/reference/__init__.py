"""A draft's arithmetic in plain PyTorch, written for reading: one concept a file.

`run` goes through a `Forward` from the target's features to the proposed tokens,
layer by layer, with weights that it asks for by the names of the engine's tree
when it needs them.

Source: SGLang 0.5.23, the kernels that an NVIDIA card runs. Norms, rotary
embedding and softmax compute in float32 in every dtype, as those do.
"""

from dflash_audit.warmup.reference.draft import run
from dflash_audit.warmup.reference.inputs import Inputs, random_inputs
from dflash_audit.warmup.reference.outputs import Outputs
from dflash_audit.warmup.reference.weights import Weights

__all__ = ["Inputs", "Outputs", "Weights", "random_inputs", "run"]
