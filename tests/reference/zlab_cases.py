"""The drafts that z-lab's package and the reference are both run on."""

from dataclasses import replace
from typing import Final

import torch
from reference.families import BLOCKS, CONTEXT, FAMILIES, SEED
from reference.random_draft import FIXTURES, Config, Draft, RandomWeights, config_of, draft_of, fuse
from safetensors.torch import load_file

from dflash_audit.warmup.reference import Inputs, random_inputs

SEED_DRAFT: Final = "seed-bf16"
SEED_CONTEXT: Final = 200
"""Past the seed's window of 128."""

CASES: Final = (
    "dflash",
    "dflash-bias",
    "dflash-causal",
    "dflash-llama3",
    "dflash-narrow",
    "dflash-window",
    "dflash-yarn",
    "dflash2",
    SEED_DRAFT,
)
"""What z-lab's package knows of the families, and the seed with its own weights."""


def case(name: str) -> tuple[Config, Draft, Inputs]:
    """The config of a case, its draft and its inputs, in float32."""
    seed = name == SEED_DRAFT
    config = config_of(FIXTURES / name) if seed else FAMILIES[name]
    draft = draft_of(config)
    if seed:
        parts = load_file(FIXTURES / name / "model.safetensors")
        whole = {key: part.float() for key, part in fuse(draft.tree, parts).items()}
        draft = Draft(draft.forward, draft.tree, RandomWeights(whole))
    context = SEED_CONTEXT if seed else CONTEXT
    return (
        config,
        draft,
        random_inputs(draft.forward, SEED, BLOCKS, context, torch.float32, torch.device("cpu")),
    )


def in_dtype(inputs: Inputs, dtype: torch.dtype) -> Inputs:
    features, embedding, head = (part.to(dtype) for part in (inputs.features, inputs.embedding, inputs.head))
    return replace(inputs, features=features, embedding=embedding, head=head)
