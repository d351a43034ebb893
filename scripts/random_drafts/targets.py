"""The target beside a draft, for an engine that builds the draft by it."""

from random_drafts.case import Case, Json

TARGET = "target.json"


def depth(case: Case) -> int:
    """The layers of the target that the draft is served beside."""
    told = case.files.get(TARGET, {}).get("num_hidden_layers") or case.setting("num_target_layers")
    return told if isinstance(told, int) and told > 0 else 8


def choose(case: Case) -> None:
    """A target that is not made to fit, for some of the drafts: its depth, or a width or vocabulary too."""
    if case.chance(0.7):
        return
    s = case.sizes
    own: Json = {"num_hidden_layers": case.pick(1, 2, 3, 12, 36, 48, 61, 94)}
    if case.chance(0.25):
        own["vocab_size"] = case.pick(s.vocab // 2, s.vocab + 64, 256)
    if case.chance(0.2):
        own["hidden_size"] = case.pick(64, 128, 2 * s.hidden)
    case.files[TARGET] = own
