"""From the hidden states of blocks to the tokens that they propose."""

import torch

from dflash_audit.forward import Domino, LiLiCorr, Markov, Selector
from dflash_audit.warmup.reference import lilicorr, selector
from dflash_audit.warmup.reference.candidates import Candidates, candidates
from dflash_audit.warmup.reference.domino import domino, domino_rows
from dflash_audit.warmup.reference.inputs import Inputs
from dflash_audit.warmup.reference.markov import markov
from dflash_audit.warmup.reference.modules import Modules
from dflash_audit.warmup.reference.walk import walk

Proposal = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Candidate ids and logits, [requests, slots, k] each, and tokens, [requests, slots]."""


def propose(modules: Modules, hidden: torch.Tensor, context: torch.Tensor, inputs: Inputs) -> Proposal:
    """Through the target's head, then through the draft's own.

    Args:
        hidden: [requests, rows, hidden]
        context: the projected context, [context, hidden].
    """
    forward, watch = modules.forward, modules.watch
    head = forward.head
    rows = domino_rows(head, hidden) if isinstance(head, Domino) else hidden[:, forward.first_slot :]
    with watch.stage("candidates"):
        found = candidates(rows, inputs.head, head)
        logits = selector.transformed(head, found.logits) if isinstance(head, Selector) else found.logits
        watch.out(logits)
    return found.ids, logits, _tokens(modules, found, logits, rows, context, inputs)


def _tokens(
    modules: Modules,
    found: Candidates,
    logits: torch.Tensor,
    rows: torch.Tensor,
    context: torch.Tensor,
    inputs: Inputs,
) -> torch.Tensor:
    head, watch = modules.forward.head, modules.watch
    if not rows.shape[1]:  # a block of an anchor alone proposes nothing
        return found.ids[..., 0]
    if isinstance(head, Selector):
        with watch.stage("selector"):
            scores = selector.lattice(modules, found.ids, logits, rows, inputs.anchors)
            return walk(watch.out(scores), found.ids)
    if isinstance(head, Markov):
        with watch.stage("markov"):
            return markov(modules, head, found.all_logits, rows, inputs.anchors)
    if isinstance(head, Domino):
        with watch.stage("domino"):
            return domino(modules, head, found.all_logits, rows, inputs.anchors, inputs.embedding)
    if isinstance(head, LiLiCorr):
        with watch.stage("lilicorr"):
            last = context[inputs.lengths - 1]
            scores = lilicorr.lattice(modules, head, found, rows, last, inputs.embedding)
            return walk(watch.out(scores), found.ids)
    return found.all_logits.argmax(dim=-1)
