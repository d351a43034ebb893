"""`quant_method` that is missing or spelled as no engine spells it, told by the keys beside it."""

from collections.abc import Container, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from dflash_audit.facts import Facts
from dflash_audit.quantization import METHODS
from dflash_audit.quantization.resolve import KNOWN
from dflash_audit.repairs.edit import Proposal, edit

OWN: Final = "quantization_config"
KEY: Final = "quant_method"

SIGNS: Final[Mapping[str, str]] = {
    "quant_algo": "modelopt",
    "autoround_version": "auto-round",
    "config_groups": "compressed-tensors",
    "weight_block_size": "fp8",
    "activation_scheme": "fp8",
    "zero_point": "awq",
    "desc_act": "gptq",
    "sym": "gptq",
}
"""A key that the configs of one method have -> that method; the first that is there counts.

Source: the quantization configs of transformers 4.57 (`utils/quantization_config.py`), ModelOpt's
`quant_algo`, which SGLang 0.5.23 goes by in `model_config.py`, and AutoRound's `autoround_version`.
"""


def propose(facts: Facts) -> Iterator[Proposal]:
    """The method that the other keys are of, else the one whose name is nearest; all else stays."""
    config = facts.checkpoint.config
    own = config.get(OWN)
    if not isinstance(own, Mapping):
        return
    leaves = {tensor.name.rpartition(".")[2] for tensor in facts.checkpoint.tensors}
    for method, told in _told(own, leaves):
        found = edit(config, (OWN, KEY), method, f"{told}, and {_says(own)}.")
        if found is not None:
            yield (found,)
            return


MODELOPT_TENSOR: Final = "weight_scale_2"
"""The second scale of NVFP4 as ModelOpt stores it, and nobody else."""


def _told(own: Mapping[str, Any], leaves: Container[str]) -> Iterator[tuple[str, str]]:
    """(method, what tells it), the surest first; `leaves` are the last parts of the tensors' names."""
    if MODELOPT_TENSOR in leaves:
        yield "modelopt", f"the tensors have the {MODELOPT_TENSOR} of ModelOpt"
        return
    sign = next((key for key in SIGNS if own.get(key) is not None), None)
    if sign is not None:
        yield SIGNS[sign], f"{sign} beside it is of a {SIGNS[sign]} config"
    written = own.get(KEY)
    names = [*dict.fromkeys((*SIGNS.values(), *METHODS))]
    if isinstance(written, str) and written.lower() not in KNOWN:
        for near in get_close_matches(written.lower(), names, n=1, cutoff=0.7):
            yield near, f"{near} is the nearest name of a method"


def _says(own: Mapping[str, Any]) -> str:
    written = own.get(KEY)
    if written is None:
        return "no method is named"
    known = isinstance(written, str) and written.lower() in {*KNOWN, *SIGNS.values()}
    return f"{written!r} is another method" if known else f"{written!r} is no method that the engine has"
