"""Which class a draft is built with, by the names in its `architectures`.

Source: SGLang 0.5.23 `get_model_architecture` and `resolve_transformers_arch`
in `srt/model_loader/utils.py`, `srt/models/registry.py`.
"""

from collections.abc import Mapping
from importlib import resources

from dflash_audit.engines.sglang.conversions import Config
from dflash_audit.engines.sglang.draft import CLASSES, DraftClass
from dflash_audit.engines.sglang.known_architectures import KNOWN
from dflash_audit.refusal import NotModelled, Refused


def draft_class(config: Config, lacks: frozenset[str] = frozenset()) -> DraftClass:
    """The draft class that the engine picks; `lacks` are those of `KNOWN` that its version has not.

    Raises:
        Refused: the engine knows none of the names.
        NotModelled: it knows the name, or falls back to a class of transformers.
    """
    names = config.get("architectures") or []
    known = [name for name in names if name in KNOWN and name not in lacks]
    if not known:
        _refuse_unknown(config, names)
    name = known[0]
    if name not in CLASSES:
        raise NotModelled(f"{name} is a class of this engine that the audit does not replay")
    return CLASSES[name]


def _refuse_unknown(config: Config, names: list[str] | str) -> None:
    auto_map = config.get("auto_map")
    for name in names:
        if name.startswith("Transformers"):
            continue
        if name in transformers_classes() or (isinstance(auto_map, Mapping) and "AutoModel" in auto_map):
            raise NotModelled(
                f"{name} falls back to an implementation outside this engine, which is not replayed"
            )
        if isinstance(names, str):
            raise Refused(f"architectures is a string, {names!r}: the engine takes each letter for a name")
        raise Refused(f"{name} is no class of this engine, nor of transformers")
    raise NotModelled("the engine falls back to its Transformers backend, which is not replayed")


def transformers_classes() -> frozenset[str]:
    """Model classes of transformers 5.19.0 that SGLang has no class of its own for."""
    text = resources.files(__package__).joinpath("transformers_classes.txt").read_text("utf-8")
    return frozenset(text.split())
