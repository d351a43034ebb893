"""Record what the real SGLang does with the case folders: writes their expected.json.

    python scripts/record_cases.py fixtures/cases fixtures/fuzz

Run it with the Python of an environment that holds sglang==0.5.23 or 0.5.19; it
needs gcc and no GPU. Each case is written out as a checkpoint and handed to SGLang's
own ModelConfig, quantization config, draft class, weight iterator and load_weights, as
the release has them (`sglang-VERSION`) and, on 0.5.23, with the change of `apply_change`
(`sglang-next`). Records of other engines stay as they are. A case's args.json may
hold `--quantization NAME`, `--tp N`, `--speculative-draft-attention-backend NAME`
and `--gpu CARD`; a run records the cases of one card.

Replaced are: the platform (SGLang picks methods and schemes by it at import, so
the card is claimed, over a stub of the driver's library), and the rotary
embedding, whose kernels need a GPU, once it is built on the CPU.

A record holds `class`, `quantization` (the method), `stage` and `error` (type
and message) of a refusal, and `tp` where it is not 1; of a draft that was built
`parameters` and `asked` (module -> name under which the quantization config was
asked); of one that failed to load `at_tensor`; of one that loaded `loaded`
(tensor -> parameters and shards), `dropped`, `casts`, `wrong_size` (parameters
that took in another amount of numbers than they hold) and `unfilled` (without
those that have a right value of their own).
"""

import argparse
import json
import logging
import math
import re
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from materialize import materialize  # noqa: E402

from dflash_audit.cards import CARDS, DEFAULT_CARD  # noqa: E402
from dflash_audit.engines.installed.child.card import claim_card  # noqa: E402

Record = dict[str, Any]

FUSED = {"qkv_proj": ["q_proj", "k_proj", "v_proj"], "gate_up_proj": ["gate_proj", "up_proj"]}
SHARDS: dict[str, tuple[str | int, ...]] = {"qkv_proj": ("q", "k", "v"), "gate_up_proj": (0, 1)}

CHANGED = "sglang-0.5.23"
"""The release that `apply_change` is written for."""

VENDOR = {"encoder.fc": "fc", "encoder.output_norm_enc": "hidden_norm"}
"""Modules under the names of the native export."""

BY_DESIGN = (
    ".bias", ".inv_freq", ".cos_cached", ".sin_cached",
    ".input_scale", ".output_scale", ".k_scale", ".v_scale", ".kv_scale",
)  # fmt: skip
"""Tensors that the change lets a module drop."""


def claim_h200() -> None:
    """Make torch say that this machine has one H200. Call before SGLang is imported."""
    claim_card(CARDS[DEFAULT_CARD])


def replace_what_needs_a_gpu() -> None:
    import torch
    from sglang.srt.layers.quantization import fp4_utils
    from sglang.srt.layers.rotary_embedding import factory, rope_variant
    from sglang.srt.models import dflash

    build = factory.get_rope

    class Rope(torch.nn.Module):  # type: ignore[misc]
        """Built as SGLang builds it, for what it refuses, and thrown away."""

        is_neox_style = True

        def __init__(self, head_dim: int, rotary_dim: int | None = None, **more: Any) -> None:
            super().__init__()
            factory._ROPE_DICT.clear()
            build(head_dim, rotary_dim=rotary_dim, **more)
            self.rotary_dim = rotary_dim
            self.register_buffer("cos_sin_cache", torch.zeros(1), persistent=False)

    dflash.get_rope = Rope
    rope_variant.get_device = lambda *_: "cpu"
    # A server settles this at its start.
    fp4_utils.FP4_GEMM_RUNNER_BACKEND = fp4_utils.Fp4GemmRunnerBackend.MARLIN


def apply_change() -> None:
    """Turn the release into `sglang-next`: the change to DFlash drafts, in memory.

    A draft whose config.json carries a quantization_config is built like the
    classes that support quantization; the fused names are known to every
    quantization config; and load_weights refuses what the release would drop:
    a tensor for a module that the draft has under a parameter name that this
    module does not have, and decoder layers without an `fc`.
    """
    from sglang.srt.models.dflash import DFlashDraftModel

    build, load = DFlashDraftModel.__init__, DFlashDraftModel.load_weights

    def __init__(self: Any, config: Any, quant_config: Any = None, prefix: str = "") -> None:
        if getattr(config, "quantization_config", None) is not None:
            object.__setattr__(self, "supports_quantization", True)  # not a torch module yet
        build(self, config=config, quant_config=quant_config, prefix=prefix)

    def load_weights(self: Any, weights: Iterable[tuple[str, Any]]) -> None:
        parameters = defaultdict(set)
        for name, _ in self.named_parameters():
            module, _, leaf = name.rpartition(".")
            parameters[module].add(leaf)
        modules = {name for name, _ in self.named_modules() if name}
        filled = set()

        def checked() -> Iterator[tuple[str, Any]]:
            for name, weight in weights:
                module, leaf, alias = owner(name, modules)
                known = leaf in parameters[module]
                if module in modules and not known and not name.endswith(BY_DESIGN):
                    has = sorted(parameters[module])
                    raise ValueError(f"refused: {name!r} is for module {module}, whose parameters are {has}")
                if known:
                    filled.add(module)
                yield alias, weight

        load(self, checked())
        if any(module.startswith("layers.") for module in filled) and "fc" not in filled:
            raise ValueError("refused: the checkpoint fills decoder layers but no parameter of fc")

    DFlashDraftModel.packed_modules_mapping = FUSED
    DFlashDraftModel.__init__ = __init__
    DFlashDraftModel.load_weights = load_weights


def owner(tensor: str, modules: set[str]) -> tuple[str, str, str]:
    """The draft's module that a checkpoint tensor is for, its parameter, and the name to load it by."""
    path, _, leaf = tensor.rpartition(".")
    if path in VENDOR:
        return VENDOR[path], leaf, f"{VENDOR[path]}.{leaf}"
    path = path.removeprefix("model.")
    parent, _, last = path.rpartition(".")
    for fused, shards in FUSED.items():
        if last in shards and f"{parent}.{fused}" in modules:
            return f"{parent}.{fused}", leaf, tensor
    return path, leaf, tensor


@dataclass
class Watch:
    """Notes what reaches the parameters of a draft while SGLang loads it."""

    tensors: list[str] = field(default_factory=list)
    held: list[Any] = field(default_factory=list)  # keeps the ids in `names` from being used again
    names: dict[int, str] = field(default_factory=dict)
    targets: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    casts: list[tuple[str, str, str, str]] = field(default_factory=list)
    took: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def read(self, weights: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        for name, tensor in weights:
            self.tensors.append(name)
            self.held.append(tensor)
            self.names[id(tensor)] = name
            yield name, tensor

    def loader(self, name: str, load: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the weight loader of the parameter `name`."""

        def watched(parameter: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
            source = self.names.get(id(tensor), self.tensors[-1])
            self.targets[source].add(name if not args or args[0] is None else f"{name}[{args[0]}]")
            self.took[name] += tensor.numel()
            if tensor.dtype != parameter.dtype:
                self.casts.append((source, torch_name(tensor.dtype), name, torch_name(parameter.dtype)))
            return load(parameter, tensor, *args, **kwargs)

        return watched

    def attach(self, model: Any) -> None:
        from sglang.srt.model_loader.weight_utils import default_weight_loader
        from sglang.srt.models import dflash, dspark

        names = {}
        for name, parameter in model.named_parameters():
            if not hasattr(parameter, "weight_loader"):
                names[id(parameter)] = name
            elif hasattr(parameter, "_weight_loader"):  # a read-only property gives it
                parameter._weight_loader = self.loader(name, parameter.weight_loader)
            else:
                parameter.weight_loader = self.loader(name, parameter.weight_loader)

        def default(parameter: Any, tensor: Any) -> Any:
            return self.loader(names[id(parameter)], default_weight_loader)(parameter, tensor)

        dflash.default_weight_loader = dspark.default_weight_loader = default


def torch_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


@dataclass
class Replay:
    """One draft, from its config to its loaded weights, stage by stage as SGLang goes."""

    path: Path
    quantization: str | None
    stage: str | None = "config"
    record: Record = field(default_factory=lambda: dict.fromkeys(("class", "quantization", "stage", "error")))
    watch: Watch = field(default_factory=Watch)
    ordered: set[str] = field(default_factory=set)

    def run(self) -> Record:
        error = None
        try:
            self._run()
            self.stage = None
        except Exception as e:  # whatever it is, it is what the engine says
            error = f"{type(e).__name__}: {e}"
        self.record |= {"stage": self.stage, "error": error}
        if self.stage == "load":
            self.record["at_tensor"] = self.watch.tensors[-1] if self.watch.tensors else None
        return self.record

    def _run(self) -> None:
        from sglang.srt.configs.load_config import LoadConfig
        from sglang.srt.configs.model_config import ModelConfig
        from sglang.srt.model_loader.loader import DefaultModelLoader, _get_quantization_config
        from sglang.srt.model_loader.utils import get_model_architecture, set_default_torch_dtype

        config = ModelConfig(
            str(self.path),
            is_draft_model=True,
            quantization=self.quantization,
            dtype="bfloat16",
            speculative_algorithm="DFLASH",
        )
        self.record["quantization"] = config.quantization
        self.stage = "class"
        draft_class, _ = get_model_architecture(config)
        self.record["class"] = draft_class.__name__
        self.stage = "quant_config"
        quant_config = None
        asked: dict[int, str] = {}
        if config.quantization is not None:
            quant_config = _get_quantization_config(config, LoadConfig())
        if quant_config is not None:
            note_prefixes(quant_config, asked)
        self.stage = "build"
        with set_default_torch_dtype(config.dtype):
            model = draft_class(config=config.hf_config, quant_config=quant_config)
        self._record_build(model, asked)
        self.stage = "load"
        self.watch.attach(model)
        weights = DefaultModelLoader(LoadConfig())._get_all_weights(config, model)
        model.load_weights(self.watch.read(weights))
        self._record_load(getattr(config.hf_config, "quantization_config", None) or self._from_file())

    def _from_file(self) -> dict[str, Any]:
        """The quantization config in a file of its own; more than one is refused before."""
        paths = sorted(self.path.glob("*_config.json"))
        found = [json.loads(path.read_text()) for path in paths if path.name != "generation_config.json"]
        return found[0] if len(found) == 1 and isinstance(found[0], dict) else {}

    def _record_build(self, model: Any, asked: dict[int, str]) -> None:
        modules = dict(model.named_modules())
        parameters = []
        for name, parameter in model.named_parameters():
            module = modules[name.rpartition(".")[0]]
            # A rule of the config may give one layer an order by activations that the others do not have.
            if getattr(getattr(method_of(module), "quant_config", None), "desc_act", False):
                self.ordered.add(name)
            parameters.append(described(name, parameter, module))
        self.record["parameters"] = parameters
        by_module = {name: asked[id(m)] for name, m in modules.items() if id(m) in asked and has_own(m)}
        if by_module:
            self.record["asked"] = by_module

    def _record_load(self, quantization_config: dict[str, Any]) -> None:
        watch, parameters = self.watch, self.record["parameters"]
        size = {p["name"]: math.prod(p["shape"]) for p in parameters}
        act_order = bool(quantization_config.get("desc_act"))
        filled = set().union(*watch.targets.values())
        holes = [
            (hole, p["scheme"] or "", act_order or p["name"] in self.ordered)
            for p in parameters
            for hole in unfilled(p["name"], filled)
        ]
        self.record |= {
            "loaded": {tensor: sorted(targets) for tensor, targets in watch.targets.items()},
            "dropped": sorted(tensor for tensor in watch.tensors if tensor not in watch.targets),
            "unfilled": sorted(
                hole for hole, scheme, ordered in holes if not has_default(hole, scheme, ordered)
            ),
            "casts": [
                dict(zip(("tensor", "from", "parameter", "to"), c, strict=True)) for c in sorted(watch.casts)
            ],
            "wrong_size": [
                {"parameter": name, "holds": size[name], "took": took}
                for name, took in sorted(watch.took.items())
                # These two are written once for each shard of a fused layer, by design.
                if took != size[name] and not name.endswith((".weight_shape", ".g_idx"))
            ],
        }


def method_of(module: Any) -> Any:
    """What quantizes a module: its scheme where it has one, None of one that nothing quantizes."""
    return getattr(module, "scheme", None) or getattr(module, "quant_method", None)


def described(name: str, parameter: Any, module: Any) -> dict[str, Any]:
    """A built parameter of a module as a record has it."""
    method = method_of(module)
    return {
        "name": name,
        "shape": list(parameter.shape),
        "dtype": torch_name(parameter.dtype),
        "module_class": type(module).__name__,
        "scheme": None if method is None else type(method).__name__,
    }


def note_prefixes(quant_config: Any, asked: dict[int, str]) -> None:
    """Note in `asked` the name under which `quant_config` is asked about each layer."""
    answer = quant_config.get_quant_method

    def get_quant_method(layer: Any, prefix: str = "") -> Any:
        asked[id(layer)] = prefix
        return answer(layer, prefix)

    quant_config.get_quant_method = get_quant_method


def has_own(module: Any) -> bool:
    return any(True for _ in module.parameters(recurse=False))


def unfilled(parameter: str, filled: set[str]) -> list[str]:
    """The parameter, or the shards of a fused one, that nothing filled."""
    if parameter in filled:
        return []
    shards = SHARDS.get(parameter.split(".")[-2]) if "." in parameter else None
    names = [f"{parameter}[{shard}]" for shard in shards] if shards else [parameter]
    return [name for name in names if name not in filled]


def has_default(hole: str, scheme: str, act_order: bool) -> bool:
    """Whether an unfilled parameter holds a right value of its own: a closed list."""
    name = re.sub(r"\[.*", "", hole)
    leaf = name.rpartition(".")[2]
    return (
        name.endswith((".attn.k_scale", ".attn.v_scale"))
        or (leaf == "input_scale" and "Fp4" in scheme)
        or (leaf == "g_idx" and not act_order)
    )


def record_case(
    case: Path, replay: type[Replay] = Replay, write: Callable[[Path, Path], Path] = materialize
) -> Record:
    """What SGLang does with the case as `write` writes it out, as `replay` records it."""
    from sglang.srt.server_args import ServerArgs

    options = argparse.ArgumentParser()
    options.add_argument("--quantization")
    options.add_argument("--tp", type=int, default=1)
    options.add_argument("--speculative-draft-attention-backend", dest="backend")
    options.add_argument("--gpu")  # claimed before SGLang was imported
    args = options.parse_args(given_options(case))
    server = ServerArgs(
        model_path="dummy",
        device="cpu",
        tp_size=args.tp,
        speculative_draft_attention_backend=args.backend,
    )
    publish(server)
    with tempfile.TemporaryDirectory() as folder:
        record = replay(write(case, Path(folder) / case.name), args.quantization).run()
    return record | ({} if args.tp == 1 else {"tp": args.tp})


def given_options(case: Path) -> list[str]:
    """The words of a case's args.json."""
    file = case / "args.json"
    words: list[str] = json.loads(file.read_text()) if file.exists() else []
    return words


def publish(server: Any) -> None:
    """Make `server` what this process serves, as rank 0 of its ranks, with no process group behind it."""
    from sglang.srt import runtime_context
    from sglang.srt.runtime_context import get_parallel

    # The groups of the case before, which may have had another number of ranks.
    if hasattr(get_parallel(), "override_permanently"):
        from sglang.test import parallel_groups

        get_parallel().override_permanently(tp_group=None, attn_tp_group=None)
        parallel_groups.publish(server, role="scheduler")
        return
    runtime_context.publish(server, role="scheduler")
    ranks = {"tp_rank": 0, "attn_tp_rank": 0, "attn_tp_size": server.tp_size}
    get_parallel()._overrides = ranks  # 0.5.19 has no call for it


def write_lines(value: Any, depth: int = 0) -> str:
    """JSON with a line for each entry of a record, so that a change of one is a line of a diff."""
    if depth == 3 or not value or not isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"))
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {write_lines(inner, depth + 1)}" for key, inner in value.items()]
    else:
        lines = [write_lines(inner, depth + 1) for inner in value]
    start, end = "{}" if isinstance(value, dict) else "[]"
    indent = "\n" + " " * depth
    return f"{start}{indent} {f',{indent} '.join(lines)}{indent}{end}"


def start(capability: int) -> str:
    """Import SGLang for a card of this compute capability (times ten); the name of the engine."""
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    claim_card(capability)
    replace_what_needs_a_gpu()
    import sglang

    return f"sglang-{sglang.__version__}"


def record_all(
    cases: Iterable[Path], record: Callable[[Path], Record], capability: int = CARDS[DEFAULT_CARD]
) -> Iterator[tuple[Path, dict[str, Record]]]:
    """Record every case with the release, and then with what `apply_change` makes of the one that it fits."""
    engine = start(capability)
    release = {case: record(case) for case in cases}
    if engine != CHANGED:
        for case, released in release.items():
            yield case, {engine: released}
        return
    apply_change()
    for case, released in release.items():
        yield case, {engine: released, "sglang-next": record(case)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what the real SGLang does with case folders.")
    parser.add_argument("folders", nargs="+", type=Path, help="a folder of case folders")
    parser.add_argument("--gpu", default=DEFAULT_CARD, choices=CARDS, help="the card of the cases to record")
    given = parser.parse_args()
    found = sorted(path.parent for folder in given.folders for path in folder.rglob("tensors.json"))
    cases = [case for case in found if card_of(case) == given.gpu]
    for case, records in record_all(cases, record_case, CARDS[given.gpu]):
        file = case / "expected.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(write_lines(known | records) + "\n")
    print(f"recorded {len(cases)} cases")


def card_of(case: Path) -> str:
    """The card that a case is for."""
    words = given_options(case)
    return words[words.index("--gpu") + 1] if "--gpu" in words else DEFAULT_CARD


if __name__ == "__main__":
    main()
