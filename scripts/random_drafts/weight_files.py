"""The weights in several files, with an index or without, right or wrong."""

from random_drafts.case import Case

INDEX = "model.safetensors.index.json"


def shard(case: Case) -> None:
    """Spread the tensors over some files."""
    names = sorted(case.tensors)
    if len(names) < 2:
        return
    count = case.pick(2, 2, 3, 5)
    files = case.pick(
        [f"model-{number + 1:05}-of-{count:05}.safetensors" for number in range(count)],
        [f"draft-{number}.safetensors" for number in range(count)],
        ["model.safetensors", *(f"extra_{number}.safetensors" for number in range(1, count))],
        ["consolidated.safetensors", "model.safetensors"],
        ["a.safetensors", "dflash.b.safetensors", "z.safetensors"],
    )
    shards: dict[str, list[str]] = {file: [] for file in files}
    if case.chance(0.5):  # as a quantizer writes them, one after another
        width = -(-len(names) // len(files))
        for at, name in enumerate(names):
            shards[files[at // width]].append(name)
    else:
        for name in names:
            shards[case.rng.choice(files)].append(name)
    if case.chance(0.15):
        _twice(case, shards)
    case.shards = {file: held for file, held in shards.items() if held}
    if case.chance(0.6):
        case.files[INDEX] = {"metadata": {"total_size": 1}, "weight_map": _index(case)}


def _twice(case: Case, shards: dict[str, list[str]]) -> None:
    """A tensor that lies in two files."""
    name = case.rng.choice(sorted(case.tensors))
    for held in shards.values():
        if name not in held:
            held.append(name)
            return


def _index(case: Case) -> dict[str, str]:
    """Tensor -> its file, as it is or with one fault."""
    index = {name: file for file, names in case.shards.items() for name in names}
    match case.rng.randrange(8):
        case 0:  # a file that no entry names
            lost = case.rng.choice([*case.shards])
            return {name: file for name, file in index.items() if file != lost} or index
        case 1:  # an entry too few
            del index[case.rng.choice(sorted(index))]
        case 2:  # an entry in another file
            index[case.rng.choice(sorted(index))] = case.rng.choice([*case.shards])
        case 3:  # a tensor that nobody has
            index["layers.0.self_attn.nothing.weight"] = case.rng.choice([*case.shards])
        case _:
            pass
    return index
