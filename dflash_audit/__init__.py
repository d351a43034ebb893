"""An offline auditor of DFlash draft checkpoints. docs/library.md has what this package is for others."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dflash_audit.engine_run import EngineRun
    from dflash_audit.errors import Unreadable
    from dflash_audit.finding import Finding, Skip
    from dflash_audit.library import audit, render, to_json
    from dflash_audit.report import Report
    from dflash_audit.usage import WrongUsage
    from dflash_audit.warmup.options import Options as WarmUpOptions

__all__ = [
    "EngineRun",
    "Finding",
    "Report",
    "Skip",
    "Unreadable",
    "WarmUpOptions",
    "WrongUsage",
    "__version__",
    "audit",
    "render",
    "to_json",
]

_HOMES = {
    "EngineRun": "engine_run:EngineRun",
    "Finding": "finding:Finding",
    "Report": "report:Report",
    "Skip": "finding:Skip",
    "Unreadable": "errors:Unreadable",
    "WarmUpOptions": "warmup.options:Options",
    "WrongUsage": "usage:WrongUsage",
    "audit": "library:audit",
    "render": "library:render",
    "to_json": "library:to_json",
}
"""Name -> where it is, as module:attribute. Each is imported when it is asked for: a process that only needs
the version, or one command, does without the rest."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Only here, as all the rest.
    from importlib import import_module

    module, _, attribute = _HOMES[name].partition(":")
    found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), attribute)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
