"""From what the child recorded to the run of an engine."""

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from dflash_audit.engine_run import Conditions, EngineRun, FlagNeeded
from dflash_audit.engines.installed.process import Record
from dflash_audit.loadplan import Fill, LoadPlan, empty_plan
from dflash_audit.quantization.config import QuantConfig
from dflash_audit.refusal import Refusal
from dflash_audit.sources.checkpoint import Checkpoint, Tensor
from dflash_audit.tree import Kind, Linear, Module, Parameter, Placement, Scheme, Tree

KINDS: Final = frozenset(kind.value for kind in Kind)


class Unfilled(NamedTuple):
    """What a parameter is when nothing fills it; the words are those of `tree.Parameter`."""

    defaulted: bool
    unread: bool = False


class Reading(NamedTuple):
    """How one package's records are read.

    `quant_config` is the audit's own reading of the quantization config, for the rules that
    look at its lists: None where the audit reads another method in it than the engine, or
    refuses it. `unfilled` is asked with a module, one of its parameters and whether inputs are
    ordered by activations. `told` adds to a run what the engine was asked with.
    """

    quant_config: Callable[[Record, Checkpoint, Conditions], QuantConfig | None]
    unfilled: Callable[[Record, Record, bool], Unfilled]
    told: Callable[[EngineRun, Checkpoint, Conditions], None] | None = None


def read_record(
    record: Record,
    engine: str,
    version: str,
    checkpoint: Checkpoint,
    conditions: Conditions,
    reading: Reading,
) -> EngineRun:
    """The run that a record tells of."""
    run = EngineRun(engine, version=version)
    run.model_class = record["class"]
    run.quantization = record["quantization"]
    run.skipped = record["skipped"]
    run.config = record["config"]
    run.quant_config = reading.quant_config(record, checkpoint, conditions)
    run.flags = tuple(FlagNeeded(flag, reason) for flag, reason in record["flags"])
    if record["stage"] is not None:
        run.refusal = Refusal(record["stage"], record["error"], record["at_tensor"])
    if record["modules"] is not None:
        run.tree = _tree(record["modules"], record["act_order"], reading)
    if run.tree is not None:
        run.plan = _plan(record, run.tree, checkpoint.tensors)
    if reading.told is not None:
        reading.told(run, checkpoint, conditions)
    return run


def _tree(modules: Sequence[Record], act_order: bool, reading: Reading) -> Tree:
    tree = Tree()
    for module in modules:
        scheme = module["scheme"]
        parameters = tuple(
            _parameter(p, reading.unfilled(module, p, act_order)) for p in module["parameters"]
        )
        on_v2 = any(p["kind"] in KINDS for p in module["parameters"])
        tree.add(
            Module(
                module["name"],
                module["class"],
                parameters,
                module["prefix"],
                None if scheme is None else Scheme(scheme, "v2" if on_v2 else "v1", parameters),
                None if module["linear"] is None else _linear(module),
            )
        )
    return tree


def _linear(module: Record) -> Linear:
    sizes = module["linear"]
    return Linear(
        module["class"],
        module["prefix"] or "",
        sizes["inputs"],
        tuple(sizes["outputs"]),
        sizes["inputs_here"],
        tuple(sizes["outputs_here"]),
    )


def _parameter(parameter: Record, unfilled: Unfilled) -> Parameter:
    name, kind = parameter["name"], parameter["kind"]
    packed = parameter["packed_factor"]
    placement = Placement(
        Kind.VOCABULARY if parameter["tokens"] is not None else Kind(kind) if kind in KINDS else Kind.PLAIN,
        output_dim=parameter["output_dim"],
        input_dim=parameter["input_dim"],
        packed_dim=parameter["packed_dim"],
        packed_factor=1 if packed is None else Fraction(*packed),
        tokens=parameter["tokens"],
    )
    return Parameter(
        name,
        tuple(parameter["shape"]),
        parameter["dtype"],
        placement,
        defaulted=unfilled.defaulted,
        unread=unfilled.unread,
    )


def _plan(record: Record, tree: Tree, tensors: tuple[Tensor, ...]) -> LoadPlan:
    """The load as it went, on the audit's tensors; one that only the engine read is told beside them.

    Which numbers went where is not recorded: the fills have no copies.
    """
    by_name: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        by_name.setdefault(tensor.name, []).append(tensor)
    read: list[Tensor] = []
    times: Counter[str] = Counter()
    for name, dtype, shape in record["reads"]:
        known = by_name.get(name, [])
        read.append(known[times[name]] if times[name] < len(known) else Tensor(name, dtype, tuple(shape), ""))
        times[name] += 1
    only_there = tuple(tensor for tensor in read if not tensor.file)
    plan = empty_plan(tree, tree, (*tensors, *only_there))
    for at, parameter, shard, dtype in record["fills"]:
        plan.fill(read[at], Fill(plan.slots[parameter], shard, dtype, copies=()))
    if not record["complete"]:
        # Of what comes behind the refusal nothing is known: it is neither missing nor dropped.
        filled, missing = plan.filled(), plan.missing(unread=True)
        plan.slots = {n: slot for n, slot in plan.slots.items() if n in filled and n not in missing}
        plan.tensors = tuple(plan.fills)
    for reason, name in record["refusals"]:
        plan.refuse(reason, name)
    return plan
