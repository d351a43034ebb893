"""Which tensors of a checkpoint vLLM loads, where it picks others than SGLang.

Source: vLLM 0.33.0 `model_executor/model_loader/default_loader.py` (`_prepare_weights`), and the
`load_weights` of its drafts, most of which gather the tensors by name before they load the first.
"""

from typing import Final

from dflash_audit.engines.vllm.architectures import BEAM, GEMMA4, LILICORR
from dflash_audit.refusal import NotModelled
from dflash_audit.sources.checkpoint import Checkpoint, Tensor
from dflash_audit.sources.weight_files import WEIGHTS

MISTRALS: Final = "consolidated"
"""How the weight files of Mistral's layout begin: where there is one, no other file is read."""

AS_THEY_COME: Final = (BEAM, GEMMA4)
"""The classes that gather none. Source: `models/beam/nvidia/dflash2.py`, `gemma4_dspark.py`."""


def loaded_tensors(checkpoint: Checkpoint, model_class: str) -> tuple[Tensor, ...]:
    """The tensors in their order, where the class gathers them the last of those that share a name.

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
    read = [tensor for tensor in checkpoint.to_load if not ours or tensor.file in ours]
    if model_class in AS_THEY_COME:
        return tuple(read)
    # LiLiCorr takes a leading `model.` away first, and gathers all but its own head's.
    names = [t.name.removeprefix("model.") if model_class == LILICORR else t.name for t in read]
    own = [model_class == LILICORR and name.startswith("lilicorr.") for name in names]
    keys = [
        (name, place if alone else -1) for place, (name, alone) in enumerate(zip(names, own, strict=True))
    ]
    loaded = tuple(dict(zip(keys, read, strict=True)).values())
    return checkpoint.to_load if len(loaded) == len(checkpoint.to_load) else loaded
