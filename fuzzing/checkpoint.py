"""The config reader and all that follows it: an input picks a recorded case and edits its files.

The whole audit runs on it, in memory: every engine's replay, every rule, and the report in a format.
"""

import json
import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final

from dflash_audit.bounded_match import own_budget
from dflash_audit.dtypes import BITS
from dflash_audit.engine_run import Conditions
from dflash_audit.engines import ENGINES, engine
from dflash_audit.errors import Unreadable
from dflash_audit.facts import Facts
from dflash_audit.formats import FORMATS, render
from dflash_audit.formats.screen import Screen
from dflash_audit.judge import judge
from dflash_audit.report import Report
from dflash_audit.sources.checkpoint import CONFIG, Checkpoint
from dflash_audit.sources.reading import read_folder
from fuzzing import matcher  # noqa: F401 # patterns that might not come to an end count as endless
from fuzzing.draw import Draw
from fuzzing.folder import MemoryFolder

CASES: Final = Path(__file__).parents[1] / "fixtures" / "cases"
HF_QUANT_CONFIG: Final = "hf_quant_config.json"
WEIGHTS: Final = "model.safetensors"
MOST_EDITS: Final = 4


def _deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


NUMBERS: Final = (
    0, 1, 2, 3, -1, 64, 2**31, 2**63, 2**64, 10**9, 10**19, 10**400, 10**4200, 0.5, -0.0, 1e308, math.nan,
    math.inf, -math.inf,
)  # fmt: skip
TEXTS: Final = (
    "", "1", "1_000", "1e5", "nan", "a" * 5000, "\x1b[31m", "\ud800", "::error::x", "\n", "\0", "<script>",
    "|", "re:(a+)+$", "re:[", "re:.*", "../../x", "Linear", "layers.0.self_attn.q_proj", "bfloat16",
    "sliding_attention", "int", "float", "channel", "group", "tensor", "block", "group_0", "static", "auto",
    "FP8", "NVFP4", "fp8", "awq", "gptq", "modelopt", "compressed-tensors", "auto-round", "w8a8_int8",
    "qwen3", "llama", "DFlashDraftModel", "yarn", "LiLiCorrDraftModel", "Qwen3DSparkModel",
    "DFlash2DraftModel", "DFlashLagunaForCausalLM", "dynamic", "linear",
)  # fmt: skip
OTHERS: Final[tuple[Any, ...]] = (
    None, True, False, [], {}, [None], [[]], {"": {}}, {"__float__": "NaN"}, [0, 1], [-1], [10**9],
    ["", ""], _deep(50), _deep(150), ["re:(a+)+$"] * 3, ["full_attention", "sliding_attention"],
    {"rope_type": "yarn", "factor": 1e308}, {"dtype": "bfloat16"}, [1, "a", None],
)  # fmt: skip
VALUES: Final = (*NUMBERS, *TEXTS, *OTHERS)
KEYS: Final = (
    "num_hidden_layers", "hidden_size", "head_dim", "vocab_size", "intermediate_size",
    "num_attention_heads", "num_key_value_heads", "layer_types", "sliding_window", "use_sliding_window",
    "rope_parameters", "rope_scaling", "rope_theta", "dflash_config", "block_size", "target_layer_ids",
    "mask_token_id", "num_target_layers", "model_type", "architectures", "quantization_config",
    "compression_config", "dtype", "torch_dtype", "num_labels", "id2label", "attention_bias", "hidden_act",
    "rms_norm_eps", "max_position_embeddings", "auto_map", "text_config", "eos_token_id",
    "tie_word_embeddings", "attention_sink_bias", "conv_kernel_size", "conv_group_size", "selector_rank",
    "max_window_layers", "ignore", "config_groups", "targets", "weights", "input_activations", "num_bits",
    "group_size", "strategy", "symmetric", "actorder", "block_structure", "kv_cache_scheme",
    "sparsity_config", "format", "quant_method", "quant_algo", "bits", "sym", "desc_act", "zero_point",
    "modules_to_not_convert", "ignored_layers", "weight_block_size", "activation_scheme", "dynamic",
    "extra_config", "exclude_modules", "quantized_layers", "dflash", "partial_rotary_factor",
    "quantization",
)  # fmt: skip


def check(data: bytes) -> None:
    """Told apart by its words or reported in a format that a program or a terminal can take."""
    draw = Draw(data)
    files, data_size = _files(draw)
    try:
        checkpoint = read_folder(MemoryFolder(files, {WEIGHTS: data_size}))
    except Unreadable as refused:
        assert refused.message.isprintable()
        return
    conditions = Conditions(
        draw.one_of((1, 1, 2, 3, 4)),
        draw.one_of((90, 100, 80, 75)),
        draw.one_of((None, None, None, "fp8", "\x1b")),
    )
    written = [FORMATS_IN_TURN[0], draw.one_of(FORMATS_IN_TURN)]
    with own_budget():
        try:
            report = _audited(checkpoint, conditions)
        except Unreadable as refused:
            assert refused.message.isprintable()
            return
        for name in dict.fromkeys(written):
            LOOKS[name](render(name, report, Screen()))


FORMATS_IN_TURN: Final = tuple(sorted(FORMATS, key=lambda name: name != "json"))


def _printable(text: str) -> None:
    assert all(line.isprintable() for line in text.split("\n"))


LOOKS: Final[Mapping[str, Callable[[str], Any]]] = {
    **dict.fromkeys(FORMATS, lambda text: text.encode("utf-8", "backslashreplace")),
    "json": json.loads,
    "text": _printable,
    "github": _printable,
}


def _audited(checkpoint: Checkpoint, conditions: Conditions) -> Report:
    runs = tuple(engine(name).replay(checkpoint, conditions) for name in ENGINES)
    gating = frozenset(ENGINES)
    findings, skips = judge(Facts(checkpoint, runs, gating, conditions))
    return Report(checkpoint.origin, checkpoint, runs, gating, tuple(findings), tuple(skips))


@cache
def _cases() -> list[tuple[dict[str, bytes], dict[str, Any]]]:
    """What each case has beside its weights, and its tensors."""
    found = []
    for folder in sorted(CASES.iterdir()):
        beside = {
            name: (folder / name).read_bytes()
            for name in (CONFIG, HF_QUANT_CONFIG)
            if (folder / name).is_file()
        }
        found.append((beside, json.loads((folder / "tensors.json").read_text())))
    return found


def _files(draw: Draw) -> tuple[dict[str, bytes], int]:
    """The files of the edited case, and how many bytes of data its weight file has."""
    beside, tensors = draw.one_of(_cases())
    files, tensors = dict(beside), dict(tensors)
    documents = {name: json.loads(raw) for name, raw in files.items()}
    for _ in range(1 + draw.number() % MOST_EDITS):
        if draw.number() % 8 == 0:
            _edit_tensors(tensors, draw)
        else:
            _edit(draw.one_of([*documents.values()]), draw)
    files.update({name: json.dumps(document).encode() for name, document in documents.items()})
    files[WEIGHTS], data_size = _weights(tensors)
    if draw.number() % 16 == 1:
        _edit_bytes(files, draw)
    return files, data_size


def _edit(document: Any, draw: Draw) -> None:
    """One change at a place that is walked to from the root."""
    place = document
    for _ in range(draw.number() % 4):
        inner = [
            value
            for value in (place.values() if isinstance(place, dict) else place)
            if value and isinstance(value, dict | list)
        ]
        if not inner:
            break
        place = draw.one_of(inner)
    keys: list[Any] = [*place] if isinstance(place, dict) else [*range(len(place))]
    act = draw.number() % 4
    if act == 0 and keys:
        del place[draw.one_of(keys)]
    elif act == 1 and isinstance(place, dict):
        place[draw.one_of(KEYS)] = _value(draw)
    elif act == 1:
        place.append(_value(draw))
    elif keys:
        place[draw.one_of(keys)] = _value(draw) if act == 2 else draw.text()


def _value(draw: Draw) -> Any:
    return deepcopy(draw.one_of(VALUES))  # a later edit may go into it


def _edit_tensors(tensors: dict[str, Any], draw: Draw) -> None:
    name = draw.one_of([*tensors]) if tensors else ""
    dtype, shape = tensors.pop(name, ("F32", [1]))
    act = draw.number() % 5
    if act == 1:
        tensors[name] = dtype, [*shape, 1] if draw.number() % 2 else shape[:-1]
    elif act == 2:
        tensors[name] = draw.one_of([*BITS]), [draw.one_of((0, 1, 2, 8, 64, 2**20)) for _ in shape]
    elif act == 3:
        tensors[draw.text()] = dtype, shape
    elif act == 4:
        tensors["layers.0." + draw.one_of(TEXTS)] = dtype, shape


def _weights(tensors: Mapping[str, Any]) -> tuple[bytes, int]:
    """A file without its data, and how many bytes that is; sizes of no whole bytes are left out."""
    header, end = {}, 0
    for name, (dtype, shape) in tensors.items():
        bits = math.prod(shape) * BITS[dtype]
        if bits % 8 == 0 and end + bits // 8 < 2**62:
            header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + bits // 8]}
            end += bits // 8
    raw = json.dumps(header, ensure_ascii=False).encode("utf-8", "replace")
    return len(raw).to_bytes(8, "little") + raw, end


def _edit_bytes(files: dict[str, bytes], draw: Draw) -> None:
    name = draw.one_of([CONFIG, *files])
    raw = files[name]
    at = draw.number(2) % (len(raw) + 1)
    files[name] = raw[:at] + draw.text().encode("utf-8", "surrogateescape") + raw[at + draw.number() % 8 :]
