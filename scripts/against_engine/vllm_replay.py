"""What the real vLLM does with one draft, from its config to its loaded weights.

Source: vLLM 0.33.0 `engine/arg_utils.py`, `config/speculative.py`,
`model_executor/model_loader/utils.py`, `default_loader.py`.
"""

import contextlib
import json
import math
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from materialize import materialize
from record_cases import Record, described, given_options, has_default, unfilled

from against_engine.vllm_target import fitting_config, table, write_target
from against_engine.vllm_watch import Watch
from dflash_audit.engines.vllm_installed.child.platform import be_rank_0_of

DSPARK: Final = ("Qwen3DSparkModel", "DSparkDraftModel", "LingDSparkModel", "Gemma4DSparkModel")
"""What a server is started with the method dspark for; with dflash for any other."""

DEFAULT_BLOCK: Final = 8
"""Tokens in a block where the config does not say: vLLM has no number of its own."""

GEMMA4: Final = "Gemma4DSparkForCausalLM"

MOST_ON_CPU: Final = 2**29
"""Bytes that a draft is built with for real. A larger one is built on the device whose tensors take no memory
and forget what they are given; all that it lets pass beside is a dtype that no copy is written for."""

SHARED: Final = re.compile(
    r"^lm_head\.|layer_scalar$|normalizer$|embed_tokens\.|mask_embedding$|draft_id_to_target_id$|\.attn\.[qkv]_(scale|zero_point)$"
)
"""What is the target's, or has a value of its own, where the checkpoint holds none."""


SET: Final = re.compile(r"\{('[^'{}]*'(?:, '[^'{}]*')*)\}")
"""A set of names in an error message."""


@dataclass
class Draft:
    """One draft of a folder, taken stage by stage as a server of so many ranks does."""

    folder: Path
    target: Path
    ranks: int
    stage: str | None = "config"
    record: Record = field(default_factory=lambda: dict.fromkeys(("class", "quantization", "stage", "error")))
    watch: Watch = field(default_factory=Watch)

    def run(self) -> Record:
        error = None
        try:
            with bfloat16():
                self._run()
            self.stage = None
        except Exception as e:  # whatever it is, it is what the engine says
            error = self._said(e)
        self.record |= {"stage": self.stage, "error": error}
        if self.stage == "load":
            self.record["at_tensor"] = self.watch.tensors[-1] if self.watch.tensors else None
        return self.record

    def _run(self) -> None:
        import torch
        from vllm.config import set_current_vllm_config
        from vllm.model_executor.layers import rotary_embedding
        from vllm.model_executor.model_loader.utils import get_model_architecture, initialize_model
        from vllm.model_executor.models.utils import get_draft_quant_config

        config = self._server().create_engine_config()
        drafted = config.speculative_config.draft_model_config
        self.record["quantization"] = drafted.quantization
        self.stage = "class"
        with set_current_vllm_config(config):
            draft_class, _ = get_model_architecture(drafted)
            self.record["class"] = draft_class.__name__
            self.stage = "build"
            # A server makes its own; here an earlier case may have left one that is equal, as 1 is to true.
            rotary_embedding._ROPE_DICT.clear()
            if draft_class.__name__ == GEMMA4:
                # As `load_dspark_model` does: this class builds with what the server has.
                config.quant_config = get_draft_quant_config(config)
            with torch.device("meta" if nominal_size(drafted.hf_config) > MOST_ON_CPU else "cpu"):
                model = initialize_model(vllm_config=config, model_config=drafted)
        self._record_build(model)
        self.stage = "load"
        self.watch.attach(model)
        leave_out_what_follows(model)
        model.load_weights(self.watch.read(weights(drafted, model)))
        self._record_load()

    def _said(self, error: Exception) -> str:
        """The error's type and message, the same in every run: sets sorted, without the scratch folder."""
        text = with_sorted_sets(f"{type(error).__name__}: {error}")
        return text.replace(f"{self.folder.parent}/", "")[:2000]

    def _server(self) -> Any:
        from vllm.engine.arg_utils import EngineArgs

        config = json.loads((self.folder / "config.json").read_text())
        # A config of the speculators library says the method by its type.
        kind = config.get("speculators_model_type") if "speculators_config" in config else None
        named = (config.get("architectures") or [None])[0]
        dspark = kind == "dspark" if kind else named in DSPARK
        block = table(config, "dflash_config").get("block_size") or config.get("block_size")
        return EngineArgs(
            model=str(self.target),
            tensor_parallel_size=self.ranks,
            skip_tokenizer_init=True,
            load_format="dummy",
            enforce_eager=True,
            dtype="bfloat16",
            max_model_len=1024,
            speculative_config={
                "method": "dspark" if dspark else "dflash",
                "model": str(self.folder),
                "num_speculative_tokens": max(1, int(block or DEFAULT_BLOCK) - 1),
            },
        )

    def _record_build(self, model: Any) -> None:
        modules = dict(model.named_modules())
        parameters, asked = [], {}
        for name, parameter in (*model.named_parameters(), *loaded_buffers(model)):
            at = name.rpartition(".")[0]
            module = modules[at]
            parameters.append(described(name, parameter, module))
            if prefix := getattr(module, "prefix", None):
                asked[at] = prefix
        self.record["parameters"] = parameters
        if asked:
            self.record["asked"] = asked

    def _record_load(self) -> None:
        watch, parameters = self.watch, self.record["parameters"]
        size = {p["name"]: math.prod(p["shape"]) for p in parameters}
        filled = set().union(*watch.targets.values())
        holes = [(hole, p["scheme"] or "") for p in parameters for hole in unfilled(p["name"], filled)]
        self.record |= {
            "loaded": {tensor: sorted(targets) for tensor, targets in watch.targets.items()},
            "dropped": sorted(tensor for tensor in watch.tensors if tensor not in watch.targets),
            "unfilled": sorted(
                hole
                for hole, scheme in holes
                if not (SHARED.search(hole) or has_default(hole, scheme, act_order=False))
            ),
            "casts": [
                dict(zip(("tensor", "from", "parameter", "to"), c, strict=True)) for c in sorted(watch.casts)
            ],
            "wrong_size": [
                {"parameter": name, "holds": size.get(name, took), "took": took}
                for name, took in sorted(watch.took.items())
                # These two are written once for each shard of a fused layer, by design.
                if took != size.get(name, took) and not name.endswith((".weight_shape", ".g_idx"))
            ],
        }


def loaded_buffers(model: Any) -> Iterator[tuple[str, Any]]:
    """The buffers of a Gemma 4 draft that its loader fills as it fills parameters."""
    if type(model).__name__ == GEMMA4:
        for name, buffer in model.named_buffers():
            if name.rpartition(".")[2] in ("layer_scalar", "normalizer"):
                yield name, buffer


def with_sorted_sets(text: str) -> str:
    """The text with the names of each set in order: Python tells them in another one every time."""
    return SET.sub(_sorted, text)


def _sorted(names: re.Match[str]) -> str:
    return "{" + ", ".join(sorted(names[1].split(", "))) + "}"


@contextlib.contextmanager
def bfloat16() -> Iterator[None]:
    """The dtype that a loader of vLLM builds in."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def nominal_size(config: Any) -> int:
    """About how many bytes a draft of this config takes in bfloat16, 0 where it does not tell."""
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size")
    sizes = [getattr(config, name, 0) for name in names]
    if not all(isinstance(size, int) for size in sizes):
        return 0
    hidden, intermediate, layers, vocabulary = sizes
    return 2 * hidden * (layers * (4 * hidden + 3 * intermediate) + 2 * vocabulary)


def weights(config: Any, model: Any) -> Iterator[tuple[str, Any]]:
    """The tensors of the checkpoint, from the files and in the order that vLLM picks."""
    from vllm.config.load import LoadConfig
    from vllm.model_executor.model_loader.default_loader import DefaultModelLoader

    loader = DefaultModelLoader(LoadConfig(use_tqdm_on_load=False))
    found: Iterator[tuple[str, Any]] = loader.get_all_weights(config, model)
    return found


def leave_out_what_follows(model: Any) -> None:
    """The load is over when buffers are fused for the GPU."""
    for module in model.modules():
        if hasattr(module, "_build_fused_kv_buffers"):
            module._build_fused_kv_buffers = lambda *_, **__: None


def record_vllm(case: Path) -> Record:
    """What vLLM does with a case folder; its target.json holds what its target has of its own."""
    words = given_options(case)
    ranks = int(words[words.index("--tp") + 1]) if "--tp" in words else 1
    be_rank_0_of(ranks)
    beside = case / "target.json"
    own = json.loads(beside.read_text()) if beside.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = materialize(case, Path(scratch) / case.name)
        config = json.loads((folder / "config.json").read_text())
        target = write_target(Path(scratch) / "target", fitting_config(config, own, ranks))
        record = Draft(folder, target, ranks).run()
    return record | ({} if ranks == 1 else {"tp": ranks})
