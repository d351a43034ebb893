"""Layers of a Laguna draft that vLLM takes for mixtures of experts; no rule of its own.

Where config.json has no `mlp_layer_types`, the config's class takes every layer but the first for one, of 256
experts. The load of a draft has a place for the gate and the shared expert of a mixture, and for no expert
of its own: their loader wants to be told which expert a tensor is for.

Source: transformers 5.20.2 `models/laguna/configuration_laguna.py`, `LagunaConfig.__post_init__`; vLLM 0.33.0
`model_executor/models/laguna_dflash.py`, `DFlashLagunaModel.load_weights`;
`model_executor/layers/fused_moe/routed_experts.py`, `RoutedExperts.weight_loader`.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from dflash_audit.diagnosis.sglang_draft import LAGUNA, Draft, whole
from dflash_audit.diagnosis.tensor_clues import Clue, Subject, made_with
from dflash_audit.diagnosis.vllm_draft import is_vllm
from dflash_audit.engine_run import EngineRun
from dflash_audit.loadplan import LoadPlan

KEY: Final = "mlp_layer_types"
KINDS: Final = ("dense", "sparse")
ONE_MLP: Final = re.compile(r"layers\.(\d{1,9})\.mlp\.(?:gate|up|down)_proj\.\w+")
IN_MLP: Final = re.compile(r"layers\.(\d{1,9})\.mlp\.(?s:.*)")

IN_EXPERTS: Final = re.compile(r"layers\.(\d{1,9})\.mlp\.experts\.(?s:.*)")

AS_STORED: Final = (
    f'Give {KEY} in config.json an entry for each layer, "dense" for these, which hold one MLP: without the'
    " key the config's class takes every layer but the first for a mixture of experts."
)

NO_EXPERTS: Final = (
    "vLLM loads no experts of a Laguna draft, whatever config.json says: serve a draft whose layers are"
    " dense, or serve this one elsewhere."
)


def _kinds(draft: Draft) -> Iterator[Clue]:
    """What tensors of one MLP tell of layers that the config says are mixtures."""
    said: Any = draft.config.get(KEY)
    if draft.model_class != LAGUNA or not whole(draft.config.get("num_experts")):
        return
    if not isinstance(said, list) or any(kind not in KINDS for kind in said):
        return
    stored = {
        layer: tensor
        for tensor in reversed(draft.named(ONE_MLP.pattern))
        if (layer := _layer(tensor.name, ONE_MLP)) is not None and layer < len(said)
    }
    told = ["dense" if layer in stored else kind for layer, kind in enumerate(said)]
    for layer in sorted(stored):
        if said[layer] != "dense":
            yield Clue("", KEY, told, said, made_with(stored[layer]))
            return


def _lost_kinds(draft: Draft) -> Iterator[Clue]:
    """What one MLP in every layer tells, where no list stands and the config's class fills none in."""
    layers = whole(draft.config.get("num_hidden_layers"))
    if draft.model_class != LAGUNA or draft.config.get(KEY) is not None or not layers:
        return
    stored = {_layer(tensor.name, ONE_MLP): tensor for tensor in reversed(draft.named(ONE_MLP.pattern))}
    if len(stored) == layers and all(layer in stored for layer in range(layers)):
        yield Clue("", KEY, ["dense"] * layers, None, made_with(stored[0]))


SUBJECTS: Final[tuple[Subject, ...]] = (
    Subject(_kinds, "builds a mixture of experts in every layer that is sparse, with no place for one MLP"),
    Subject(_lost_kinds, "does not start without it"),
)
"""Keys of a draft as vLLM reads them that the tensors prove."""


def one_mlps(run: EngineRun) -> frozenset[int]:
    """The layers that are mixtures, and of which the checkpoint holds one MLP that the load refuses."""
    if run.plan is None or not _is_laguna(run):
        return frozenset()
    refused = {_layer(refusal.tensor, ONE_MLP) for refusal in run.plan.refusals if refusal.tensor}
    return frozenset(layer for layer in refused if layer is not None and _is_mixture(run.plan, layer))


def is_of(name: str, layers: frozenset[int]) -> bool:
    """Whether a tensor or a parameter is of what follows the attention in one of the layers."""
    return bool(layers) and _layer(name, IN_MLP) in layers


def no_experts(run: EngineRun, names: Iterable[str]) -> str | None:
    """What to do about tensors or parameters of experts; None where one is something else."""
    if run.plan is None or not _is_laguna(run):
        return None
    plan, layers = run.plan, {_layer(name, IN_EXPERTS) for name in names}
    return NO_EXPERTS if all(layer is not None and _is_mixture(plan, layer) for layer in layers) else None


def _is_laguna(run: EngineRun) -> bool:
    return is_vllm(run.engine) and run.model_class == LAGUNA


def _is_mixture(plan: LoadPlan, layer: int) -> bool:
    return f"model.layers.{layer}.mlp.experts.routed_experts" in plan.modules


def _layer(name: str, pattern: re.Pattern[str]) -> int | None:
    found = pattern.fullmatch(name.removeprefix("model."))
    return int(found[1]) if found else None
