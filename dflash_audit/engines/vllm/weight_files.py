"""Which tensors of a checkpoint vLLM loads, where it picks others than SGLang.

Source: vLLM 0.33.0 `model_executor/model_loader/default_loader.py` (`_prepare_weights`), and the
`load_weights` of its drafts, each of which gathers the tensors by name before it loads the first.
"""

from typing import Final

from dflash_audit.refusal import NotModelled
from dflash_audit.sources.checkpoint import Checkpoint, Tensor
from dflash_audit.sources.weight_files import WEIGHTS

MISTRALS: Final = "consolidated"
"""How the weight files of Mistral's layout begin: where there is one, no other file is read."""


def loaded_tensors(checkpoint: Checkpoint) -> tuple[Tensor, ...]:
    """The tensors in their order, the last of those that share a name.

    Raises:
        NotModelled: vLLM reads files whose headers nobody looked at, as SGLang does not read them.
    """
    ours = {name for name in checkpoint.names if name.startswith(MISTRALS) and name.endswith(WEIGHTS)}
    if (
        ours - {file.name for file in checkpoint.files}
        or f"{MISTRALS}{WEIGHTS}.index.json" in checkpoint.names
    ):
        raise NotModelled(
            f"vLLM reads {MISTRALS}*{WEIGHTS} alone, which is not looked at beside another file"
        )
    read = [tensor for tensor in checkpoint.tensors if not ours or tensor.file in ours]
    return tuple({tensor.name: tensor for tensor in read}.values())
