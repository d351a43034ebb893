"""A warm-up as JSON and back: the keys that the report has and that the child sends."""

from collections.abc import Mapping
from typing import Any

from dflash_audit.warmup.result import Cosine, Death, Drift, Fidelity, Source, Stage, WarmUp


def to_dict(warmup: WarmUp) -> dict[str, Any]:
    """The object of the report's `warmup` list."""
    return {
        "engine": warmup.engine,
        "backend": warmup.backend,
        "device": warmup.device,
        "dtype": warmup.dtype,
        "verdict": warmup.verdict,
        "stages": [_stage(stage) for stage in warmup.stages],
        "peak_bytes": warmup.peak_bytes,
        "reached": [*warmup.reached],
        "sources": [_source(source) for source in warmup.sources],
        "out_of_range": [{"table": table, "id": at, "rows": rows} for table, at, rows in warmup.out_of_range],
        "death": warmup.death and _death(warmup.death),
        "provoked": warmup.provoked and _death(warmup.provoked),
        "survived": warmup.survived,
        "skipped": warmup.skipped,
        "fidelity": warmup.fidelity and _fidelity(warmup.fidelity),
    }


def from_dict(said: Mapping[str, Any]) -> WarmUp:
    """The warm-up that `to_dict` wrote; raises KeyError, TypeError or ValueError for anything else."""
    return WarmUp(
        engine=said["engine"],
        backend=said["backend"],
        device=said["device"],
        dtype=said["dtype"],
        stages=tuple(
            Stage(stage["name"], float(stage["seconds"]), float(stage["nonfinite"]), stage["largest"])
            for stage in said["stages"]
        ),
        reached=tuple(said["reached"]),
        sources=tuple(
            Source(source["module"], source["stage"], tuple(source["unfilled"]), tuple(source["tensors"]))
            for source in said["sources"]
        ),
        out_of_range=tuple((out["table"], int(out["id"]), int(out["rows"])) for out in said["out_of_range"]),
        peak_bytes=said["peak_bytes"],
        death=said["death"] and Death(**said["death"]),
        provoked=said["provoked"] and Death(**said["provoked"]),
        survived=said["survived"],
        skipped=said["skipped"],
        fidelity=_said_fidelity(said["fidelity"]) if said.get("fidelity") else None,
    )


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        "name": stage.name,
        "seconds": stage.seconds,
        "finite": stage.finite,
        "nonfinite": stage.nonfinite,
        "largest": stage.largest,
    }


def _source(source: Source) -> dict[str, Any]:
    return {
        "module": source.module,
        "stage": source.stage,
        "unfilled": [*source.unfilled],
        "tensors": [*source.tensors],
    }


def _death(death: Death) -> dict[str, Any]:
    return {"kind": death.kind, "stage": death.stage, "detail": death.detail, "by_draft": death.by_draft}


def _fidelity(fidelity: Fidelity) -> dict[str, Any]:
    return {
        "against": fidelity.against,
        "drifts": [_drift(drift) for drift in fidelity.drifts],
        "cosines": [
            {"stage": each.stage, "mean": each.mean, "least": each.least, "rounding": each.rounding}
            for each in fidelity.cosines
        ],
        "first": fidelity.first,
        "common": fidelity.common,
        "common_rounding": fidelity.common_rounding,
        "rescaled": [*fidelity.rescaled],
    }


def _drift(drift: Drift) -> dict[str, Any]:
    return {
        "matrix": drift.matrix,
        "numbers": drift.numbers,
        "bits": drift.bits,
        "width": drift.width,
        "error": drift.error,
        "decibels": drift.decibels,
        "gain": drift.gain,
        "group": drift.group,
        "shift": drift.shift,
    }


def _said_fidelity(said: Mapping[str, Any]) -> Fidelity:
    return Fidelity(
        against=said["against"],
        drifts=tuple(
            Drift(**{name: value for name, value in drift.items() if name != "decibels"})
            for drift in said["drifts"]
        ),
        cosines=tuple(Cosine(**cosine) for cosine in said["cosines"]),
        first=said["first"],
        common=said["common"],
        common_rounding=said["common_rounding"],
        rescaled=tuple(said["rescaled"]),
    )
