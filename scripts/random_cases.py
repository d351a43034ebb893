"""Make random case folders: drafts of every class, quantized in every layout, with faults.

    python scripts/random_cases.py OUT --count 1000 --seed 0 [--for-vllm]

Each folder `family-method-number` holds a config.json and a tensors.json (name
-> [dtype, shape]), some an hf_quant_config.json or another file of a quantizer,
an args.json with the options of the audit, and a target.json where vLLM gets a target of other
sizes. The same seed and number make
the same case, whatever the count. A case is a draft of one family whose tensors
are laid out from its sizes, quantized as one of the known quantizers would do
it or nearly so, and then given up to four faults. What the real engines do with
the cases is for `record_cases.py` to say. Standard library only.
"""

import argparse
import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from random_drafts import config_groups, for_vllm, lists, servers, targets, weight_files
from random_drafts.case import Case
from random_drafts.families import FAMILIES
from random_drafts.faults import FAULTS
from random_drafts.quantizers import METHODS
from random_drafts.variants import VARIANTS

Families = Mapping[str, Callable[[random.Random], Case]]

ALL_FAMILIES: Families = {**FAMILIES, **VARIANTS}
NEMOTRON = ("nemotron", "sinks")
GROUPED = {
    "ct-kinds": (1.5, config_groups.by_kind),
    "ct-layers": (1.2, config_groups.by_layer),
    "ct-names": (1.2, config_groups.by_name),
}
ALL_METHODS = {**METHODS, **GROUPED}
METHOD_WEIGHTS = {name: weight for name, (weight, _) in ALL_METHODS.items()}
ALL_FAULTS = {**FAULTS, lists.respell: 0.7, lists.one_spelling: 1.5}


def make(
    seed: int,
    number: int,
    families: Families = ALL_FAMILIES,
    methods: Mapping[str, float] = METHOD_WEIGHTS,
    faults: Sequence[int] = (0, 0, 0, 1, 1, 1, 2, 3, 4),
) -> tuple[str, Case]:
    """The case of this seed and number, and its family and method; `faults` are how many it may have."""
    rng = random.Random(f"{seed} {number}")
    family = rng.choice(sorted(families))
    case = families[family](rng)
    names = [*methods, *["mo-fp4"] * 20] if family in NEMOTRON else [*methods]
    method = rng.choices(names, [methods[name] for name in names])[0]
    ALL_METHODS[method][1](case)
    if family in NEMOTRON and isinstance(case.declared, dict) and case.chance(0.3):
        case.declared["quant_algo"] = "W4A16_NVFP4"  # what tells the layout, whatever the method
    for _ in range(rng.choice(faults)):
        if case.tensors:
            rng.choices([*ALL_FAULTS], [*ALL_FAULTS.values()])[0](case, rng.choice(sorted(case.tensors)))
    if case.chance(0.12):
        case.options += ["--tp", case.pick("2", "2", "2", "4", "4", "8", "3")]
    servers.choose(case)
    if case.chance(0.12):
        weight_files.shard(case)
    return f"{family}-{method}", case


def make_for_vllm(seed: int, number: int) -> tuple[str, Case]:
    """As `make`, of the families that vLLM reads in a way of its own, some beside another target.

    Two of three are such as vLLM builds, with one fault at most.
    """
    if number % 3:
        kind, case = make(seed, number, for_vllm.SERVED, for_vllm.FITTING, (0, 0, 0, 1))
    else:
        kind, case = make(seed, number, for_vllm.FAMILIES)
    targets.choose(case)
    if number % 3 and case.chance(0.6):
        for_vllm.as_asked(case)
    return kind, case


def write(folder: Path, case: Case) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files = {"config.json": case.config, "tensors.json": dict(sorted(case.tensors.items())), **case.files}
    files |= {"args.json": case.options} if case.options else {}
    files |= {"files.json": case.shards} if case.shards else {}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, separators=(",", ":")) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make random case folders.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--for-vllm", action="store_true", help="families that vLLM alone reads, and any other"
    )
    options = parser.parse_args()
    maker = make_for_vllm if options.for_vllm else make
    for number in range(options.count):
        kind, case = maker(options.seed, number)
        write(options.out / f"{kind}-{options.seed:02}{number:05}", case)


if __name__ == "__main__":
    main()
