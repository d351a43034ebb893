"""The report as JSON, version 1: a contract that other programs read. Keys are only ever added."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dflash_audit import __version__
from dflash_audit.drops import excuses
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.errors import Unreadable
from dflash_audit.finding import FailOn, Finding, Skip
from dflash_audit.formats.json_text import json_text
from dflash_audit.formats.screen import Screen
from dflash_audit.loadplan import Fill, LoadPlan
from dflash_audit.report import Report
from dflash_audit.sources.checkpoint import Checkpoint, Tensor

if TYPE_CHECKING:
    from dflash_audit.target import Target

SCHEMA_VERSION: Final = 1


def render(report: Report, screen: Screen) -> str:
    """One JSON object, on one line, whatever the screen."""
    return "".join(pieces(report, screen))


def pieces(report: Report, screen: Screen) -> list[str]:
    """As `render`, in pieces: an engine's part, with every tensor, is made when that before it is text."""
    del screen
    found: list[str] = []
    for key, value in _members(report):
        found.append(f"{',' if found else '{'}{json_text(key)}:")
        found += _array(value) if isinstance(value, Iterator) else [json_text(value)]
    return [*found, "}"]


def _array(values: Iterator[Any]) -> list[str]:
    texts = [text for value in values for text in (",", json_text(value))]
    return ["[", *texts[1:], "]"]


def schema() -> str:
    """The JSON Schema of such an object, as the package carries it."""
    return Path(__file__).with_suffix(".schema.json").read_text(encoding="utf-8").rstrip()


def document(report: Report) -> dict[str, Any]:
    """The report's object; see the contract for its keys."""
    return {key: [*value] if isinstance(value, Iterator) else value for key, value in _members(report)}


def _members(report: Report) -> Iterator[tuple[str, Any]]:
    config = _config(report)  # first: it may read a file, which counts in the source's bytes
    yield "schema_version", SCHEMA_VERSION
    yield "tool", {"name": "dflash-audit", "version": __version__}
    yield "source", _source(report)
    yield "config", config
    yield "conditions", _conditions(report)
    yield "target", _target(report.conditions.target)
    yield "engines", (_engine(report, run) for run in report.runs)
    yield "findings", (finding_document(finding) for finding in report.findings)
    yield "skips", [_skip(report, skip) for skip in report.skips]
    yield "warmup", _warmups(report)
    yield "error", report.error and {"kind": report.error.kind, "message": report.error.message}
    yield "summary", _summary(report)


def _skip(report: Report, skip: Skip) -> dict[str, Any]:
    return {"rule": skip.rule, "reason": skip.reason, "failing": skip in report.failing_skips}


def _summary(report: Report) -> dict[str, Any]:
    return {
        "errors": report.counts["error"],
        "warnings": report.counts["warning"],
        "notes": report.counts["note"],
        "exit_code": report.exit_code,
        "known": report.waived("known"),
        "ignored": report.waived("ignored"),
    }


def _source(report: Report) -> dict[str, Any]:
    read = report.checkpoint
    return {
        "kind": report.origin.kind,
        "id": report.origin.id,
        "revision": report.origin.revision,
        "commit": report.origin.commit,
        "files": [{"name": f.name, "size": f.size, "tensors": f.tensors} for f in read.files] if read else [],
        "bytes_read": read.bytes_read if read else 0,
        "bytes_total": read.bytes_total if read else 0,
    }


def _config(report: Report) -> dict[str, Any]:
    config = report.checkpoint.config if report.checkpoint else {}
    architectures = config.get("architectures")
    return {
        "architectures": _strings(architectures),
        "quantization": _declared(report.checkpoint) if report.checkpoint else None,
    }


def _target(target: "Target | None") -> dict[str, Any] | None:
    if target is None:
        return None
    return {
        "kind": target.origin.kind,
        "id": target.origin.id,
        "revision": target.origin.revision,
        "commit": target.origin.commit,
        "architectures": list(target.architectures),
        "model_type": target.model_type,
        "num_hidden_layers": target.num_hidden_layers,
        "hidden_size": target.hidden_size,
        "vocab_size": target.vocab_size,
        "quantization": target.quantization,
        "tensors": None if target.tensors is None else [_header(tensor) for tensor in target.tensors],
        "bytes_read": target.files.bytes_read,
    }


def _header(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype}


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _declared(checkpoint: Checkpoint) -> dict[str, Any] | None:
    for key in ("quantization_config", "compression_config"):
        declared = checkpoint.config.get(key)
        if isinstance(declared, dict):
            return {"method": _method(declared), "origin": "config.json"}
    try:
        # Where every engine stopped before it looked, the file is read only here.
        file = checkpoint.json_files.get("hf_quant_config.json")
    except Unreadable:
        return None
    if file is None:
        return None
    inner = file.get("quantization")
    return {"method": _method(inner if isinstance(inner, dict) else file), "origin": "hf_quant_config.json"}


def _method(declared: dict[str, Any]) -> str:
    return str(declared.get("quant_method") or declared.get("quant_algo") or "")


def conditions_document(asked: Conditions, sizes: Iterable[int], fail_on: FailOn) -> dict[str, Any]:
    """What an audit is asked to go by, but for the engines and the target."""
    return {
        "tp": [*sizes],
        "capability": asked.capability,
        "quantization": asked.quantization,
        "attention_backend": asked.attention_backend,
        "fail_on": fail_on,
    }


def _conditions(report: Report) -> dict[str, Any]:
    sizes = [size.tp for size in report.sizes] or [report.conditions.tp]
    return conditions_document(report.conditions, sizes, report.fail_on)


def _engine(report: Report, run: EngineRun) -> dict[str, Any]:
    refusal = run.refusal
    return {
        "name": run.engine,
        "gating": run.engine in report.gating,
        "verdict": report.verdict(run),
        "model_class": run.model_class,
        "quantization": run.quantization,
        "refusal": refusal and {"stage": refusal.stage, "reason": refusal.reason, "tensor": refusal.tensor},
        "parameters": _parameters(run),
        "tensors": _tensors(run, run.plan) if run.plan else [],
        "resized": _resized(run.plan) if run.plan else [],
        "version": run.version,
        "verdicts": [{"tp": tp, "verdict": each} for tp, each in report.verdicts(run).items()],
        "assumed": list(run.assumed),
    }


def _parameters(run: EngineRun) -> list[dict[str, Any]]:
    missing = run.plan.missing(unread=True) if run.plan else {}
    return [
        {
            "name": name,
            "shape": list(parameter.shape),
            "dtype": parameter.dtype,
            "module_class": module.module_class,
            "prefix": module.name if module.prefix is None else module.prefix,
            "scheme": module.scheme.name if module.scheme else None,
            "missing": [str(shard) for shard in missing.get(name, ())],
        }
        for name, module, parameter in (run.tree.parameters() if run.tree else ())
    ]


def _tensors(run: EngineRun, plan: LoadPlan) -> list[dict[str, Any]]:
    reasons = excuses(run)
    return [_tensor(tensor, plan.fills.get(tensor, ()), reasons.get(tensor)) for tensor in plan.tensors]


def _tensor(tensor: Tensor, fills: Sequence[Fill], excuse: str | None) -> dict[str, Any]:
    outcome = "loaded" if fills else "ignored" if excuse else "dropped"
    casts = [{"to": fill.cast_to, "lossy": fill.lossy} for fill in fills if fill.cast_to]
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "outcome": outcome,
        "targets": [fill.target for fill in fills],
        "cast": casts[0] if casts else None,
    }


def _resized(plan: LoadPlan) -> list[dict[str, Any]]:
    return [{"parameter": r.slot.name, "holds": r.slot.whole, "took": r.took} for r in plan.resized()]


def _warmups(report: Report) -> list[dict[str, Any]] | None:
    if report.warmups is None:
        return None
    # Only here: an audit without a warm-up does without.
    from dflash_audit.warmup.result_json import to_dict

    return [to_dict(warmup) for warmup in report.warmups]


def finding_document(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "engine": finding.engine,
        "subject": finding.subject,
        "message": finding.message,
        "hint": finding.hint,
        "count": finding.count,
        "subjects": list(finding.subjects),
        "known": finding.waived == "known",
        "ignored": finding.waived == "ignored",
        "tp": list(finding.ranks) or None,
    }
