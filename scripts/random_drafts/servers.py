"""The server that a draft is served by: its ranks, and the flag that some want."""

from random_drafts.case import Case


def choose(case: Case) -> None:
    """Other options than the defaults, for some of the drafts."""
    if "--tp" not in case.options and case.chance(0.12):
        case.options += ["--tp", case.pick("2", "2", "4")]
    if case.config.get("attention_sink_bias") is True:
        case.options += ["--speculative-draft-attention-backend", "trtllm_mha"]
