"""A report held against an engine's record of the same case, aspect by aspect."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from parity.case import Case, Record
from parity.expectation import (
    AFTER_THE_LOAD,
    BEFORE_LOAD,
    BESIDE_A_TARGET,
    OVER_RANKS,
    excused,
    fails,
    lossy,
    unfilled,
)

Report = dict[str, Any]
Engine = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Compared:
    """One engine on one case: what it did, and what the report and its entry of the engine say."""

    case: Case
    record: Record
    engine: Engine
    report: Report


Differences = Iterator[str]

PARTLY_FILLED: Final = frozenset(("unfilled-parameter",))


def disagreements(case: Case, record: Record, name: str, report: Report) -> list[str]:
    """Every difference between a record and what the report says of the engine `name`, a line each."""
    engine = next(entry for entry in report["engines"] if entry["name"] == name)
    if engine["verdict"] == "skipped":
        return []
    compared = Compared(case, record, engine, report)
    return [f"{aspect}: {said}" for aspect, find in ASPECTS.items() for said in find(compared)]


def unlike(what: str, said: Any, recorded: Any) -> Differences:
    if said != recorded:
        yield f"{what} {said} in the report, {recorded} by the engine"


def entries(what: str, said: Mapping[str, Any], recorded: Mapping[str, Any]) -> Differences:
    for name in sorted({*said, *recorded}):
        yield from unlike(f"{what} {name}", said.get(name), recorded.get(name))


def stage(it: Compared) -> Differences:
    said, recorded = it.engine["refusal"] and it.engine["refusal"]["stage"], it.record["stage"]
    # vLLM settles a draft's class with its config, and its quantization with its build.
    if of_vllm(it) and said in BEFORE_LOAD and recorded in BEFORE_LOAD:
        return
    yield from unlike("stops at", said, recorded)


def of_vllm(it: Compared) -> bool:
    return bool(it.engine["name"].startswith("vllm"))


def verdict(it: Compared) -> Differences:
    unrecorded = AFTER_THE_LOAD | (OVER_RANKS if it.record.get("tp", 1) > 1 else frozenset())
    # On several ranks a record does not tell how much of a tensor came, and what of a parameter stays free.
    whole = not any(parameter["missing"] for parameter in it.engine["parameters"])
    unrecorded |= PARTLY_FILLED if it.record.get("tp", 1) > 1 and whole else frozenset()
    unrecorded |= frozenset() if it.case.target is None else BESIDE_A_TARGET
    errors = [finding for finding in it.report["findings"] if finding["severity"] == "error"]
    later = {finding["engine"] for finding in errors if finding["rule"] in unrecorded}
    must_fail = fails(it.record, it.case.held_twice) or it.engine["name"] in later
    yield from unlike("fails", it.engine["verdict"] == "fail", must_fail)


def class_and_method(it: Compared) -> Differences:
    if it.record["class"]:
        yield from unlike("class", it.engine["model_class"], it.record["class"])
        yield from unlike("method", it.engine["quantization"], it.record["quantization"])


def parameters(it: Compared) -> Differences:
    if it.record["stage"] in BEFORE_LOAD:
        return
    said = {p["name"]: (p["shape"], p["dtype"]) for p in it.engine["parameters"]}
    yield from entries(
        "parameter", said, {p["name"]: (p["shape"], p["dtype"]) for p in it.record["parameters"]}
    )


def prefixes(it: Compared) -> Differences:
    if it.record["stage"] in BEFORE_LOAD:
        return
    classes = {p["name"]: p["module_class"] for p in it.record["parameters"]}
    for parameter in it.engine["parameters"]:
        name = parameter["name"]
        module = name.rpartition(".")[0]
        if module in it.record.get("asked", {}):
            yield from unlike(f"prefix of {name}", parameter["prefix"], it.record["asked"][module])
            yield from unlike(f"class of {name}", parameter["module_class"], classes.get(name))


def refused_tensor(it: Compared) -> Differences:
    # vLLM reads every tensor before it places one.
    if it.record["stage"] != "load" or not it.engine["refusal"] or of_vllm(it):
        return
    tensor = it.engine["refusal"]["tensor"]
    # DSpark reads every tensor before it loads one, and a check at the end holds none:
    # the record then names the last that was read.
    if tensor is None or "DSpark" in it.record["class"]:
        if it.record["at_tensor"] not in it.case.last_names:
            yield f"stops in the load at {it.record['at_tensor']}, which is not the last tensor"
        return
    yield from unlike("refuses", tensor, it.record["at_tensor"])


def outcomes(it: Compared) -> Differences:
    if it.record["stage"]:
        return
    loaded = {t["name"]: sorted(t["targets"]) for t in it.engine["tensors"] if t["outcome"] == "loaded"}
    recorded = {name: sorted(targets) for name, targets in it.record["loaded"].items()}
    yield from entries("loads", loaded, recorded)
    said = {t["name"]: t["outcome"] for t in it.engine["tensors"] if t["outcome"] != "loaded"}
    must = {n: "ignored" if excused(it.record, n) else "dropped" for n in it.record["dropped"]}
    yield from entries("loads not", said, must)


def casts(it: Compared) -> Differences:
    if it.record["stage"]:
        return
    said = {t["name"]: t["cast"] for t in it.engine["tensors"] if t["cast"]}
    must = {c["tensor"]: {"to": c["to"], "lossy": lossy(c)} for c in it.record["casts"]}
    yield from entries("casts", said, must)


def sizes(it: Compared) -> Differences:
    if it.record["stage"] or it.record.get("tp", 1) != 1:
        return
    said = {r["parameter"]: r["took"] for r in it.engine["resized"]}
    yield from entries("resizes", said, {r["parameter"]: r["took"] for r in it.record["wrong_size"]})


def gaps(it: Compared) -> Differences:
    if it.record["stage"]:
        return
    said = set().union(*(unfilled(p) for p in it.engine["parameters"]), set())
    yield from unlike("fills not", sorted(said), sorted(it.record["unfilled"]))


ASPECTS: Final[Mapping[str, Callable[[Compared], Differences]]] = {
    "stage": stage,
    "verdict": verdict,
    "class and method": class_and_method,
    "parameters": parameters,
    "prefixes": prefixes,
    "refused tensor": refused_tensor,
    "outcomes": outcomes,
    "casts": casts,
    "sizes": sizes,
    "gaps": gaps,
}
