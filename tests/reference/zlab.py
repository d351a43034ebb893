"""z-lab's own `dflash` 0.1.0 (PyPI), a PyTorch model of DFlash drafts, run on a case."""

from typing import Any

import torch
from dflash.model import DFlash2DraftModel, DFlashDraftModel
from reference.random_draft import Draft, split
from transformers import Qwen3Config

from dflash_audit.warmup.reference import Inputs

CODEBOOKS = ("predecessor_codebook", "successor_codebook")


def build(config: dict[str, Any], draft: Draft) -> Any:
    """Its model in float32, with the weights of `draft`."""
    selects = config["architectures"] == ["DFlash2DraftModel"]
    made = Qwen3Config(**config)
    model = (DFlash2DraftModel if selects else DFlashDraftModel)(made).float().eval()
    tensors = split(draft.tree, draft.weights.tensors)
    model.load_state_dict({f"{k}.weight" if k.endswith(CODEBOOKS) else k: v for k, v in tensors.items()})
    return model


def run(model: Any, draft: Draft, inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states [requests, rows, hidden] and greedy tokens [requests, slots], a request at a time."""
    rows, hidden, tokens = draft.forward.rows, [], []
    with torch.inference_mode():
        for anchor, length in zip(inputs.anchors, inputs.lengths.tolist(), strict=True):
            ids = torch.cat((anchor[None], anchor.new_full((rows - 1,), inputs.mask_id)))
            states = model(
                target_hidden=inputs.features[None, :length],
                noise_embedding=inputs.embedding[ids][None],
                position_ids=torch.arange(length + rows)[None],
            )
            hidden.append(states[0])
            tokens.append(_propose(model, states[:, 1:], anchor[None], inputs.head)[0])
    return torch.stack(hidden), torch.stack(tokens)


def _propose(model: Any, states: torch.Tensor, anchor: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
    def output_head(x: torch.Tensor) -> torch.Tensor:
        return x @ head.T

    if isinstance(model, DFlash2DraftModel):
        tokens: torch.Tensor = model.propose(states, anchor, output_head, 0.0)[0]
        return tokens
    return model.compute_logits(states, output_head).argmax(dim=-1)
