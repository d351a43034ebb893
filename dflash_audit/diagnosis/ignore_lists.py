"""Where a checkpoint holds the list of layers to leave dense, and in which words each method takes it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from dflash_audit.quantization.config import QuantConfig
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.sources.checkpoint import Checkpoint, JsonFiles

CONFIG: Final = "config.json"
MODELOPT_FILE: Final = "hf_quant_config.json"


class Dialect(NamedTuple):
    """How a method takes its list.

    `keys` of a flat config, the first that is there counts; `nested` those of
    ModelOpt's form under `quantization`. `spell` writes dotted names, or last parts
    of them, so that no other is meant, and `anywhere` so that they count behind whatever prefix, where the
    first does not; `everything` leaves every layer of a draft dense.
    """

    keys: tuple[str, ...]
    spell: Callable[[Sequence[str]], tuple[str, ...]]
    everything: tuple[str, ...]
    nested: tuple[str, ...] = ()
    anywhere: Callable[[Sequence[str]], tuple[str, ...]] | None = None


class Place(NamedTuple):
    """Where a list is: the file, the keys down to the object that holds it, and its own key."""

    file: str
    path: tuple[str, ...]
    key: str

    @property
    def name(self) -> str:
        """As a person finds it: `ignore`, with the file where it is not config.json."""
        return self.key if self.file == CONFIG else f"{self.key} in {self.file}"


def pattern(names: Sequence[str]) -> tuple[str, ...]:
    r"""One pattern for names alone or under any prefix: `re:(.*\.)?(fc|o_proj)$`."""
    if not names:
        return ()
    dotted = [name.replace(".", r"\.") for name in names]
    return (r"re:(.*\.)?" + (dotted[0] if len(dotted) == 1 else f"({'|'.join(dotted)})") + "$",)


def glob(names: Sequence[str]) -> tuple[str, ...]:
    """`*markov_w2`: vLLM takes a ModelOpt entry without a star for a name right below `model.`."""
    return tuple(f"*{name}" for name in names)


PATTERNS: Final = Dialect(("ignore",), pattern, ("re:.+",))
ATTENTION: Final = ("q_proj", "k_proj", "v_proj", "o_proj", "g_proj")
MLP: Final = ("gate_proj", "up_proj", "down_proj")
EVERYTHING: Final = ("layers", "lilicorr", "markov_head", "fc", *ATTENTION, *MLP)
"""Parts of which every linear of a draft has one in its name."""

PARTS: Final = Dialect(("ignored_layers", "modules_to_not_convert"), tuple, EVERYTHING)
EXCLUDED: Final = ("exclude_modules",)

DIALECTS: Final[Mapping[str, Dialect]] = {
    "compressed-tensors": PATTERNS,
    "w8a8_int8": PATTERNS,
    "fp8": PARTS,
    "mxfp8": PARTS,
    "modelopt": Dialect(("ignore",), tuple, ("*",), EXCLUDED, glob),
    "modelopt_fp8": Dialect(("ignore",), tuple, ("*",), EXCLUDED, glob),
    "modelopt_fp4": Dialect(
        ("ignore", "modules_to_not_convert", "exclude_modules"), tuple, ("*",), EXCLUDED, glob
    ),
    "modelopt_mixed": Dialect(("ignore", "exclude_modules"), tuple, ("*",), EXCLUDED, glob),
    "awq_marlin": Dialect(("modules_to_not_convert",), tuple, ("proj", "fc", "head", "lilicorr")),
}
"""SGLang's name of a method -> its dialect.

Source: SGLang 0.5.23, `from_config` of each method in `srt/layers/quantization/`, with
`should_ignore_layer`, `is_layer_skipped`, `is_layer_excluded` and `is_layer_skipped_awq`.
Without one are GPTQ and AutoRound, whose lists are rules of another form.
"""

LIST_KEYS: Final = ("ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules", "exclude")
"""Every key under which some tool writes such a list."""


def place_of(checkpoint: Checkpoint, method: str | None) -> Place | None:
    """Where a method reads its list in this checkpoint, None where it reads none."""
    dialect = DIALECTS.get(method or "")
    if dialect is None:
        return None
    own = checkpoint.config.get("quantization_config")
    if isinstance(own, Mapping):
        return _in(CONFIG, ("quantization_config",), own, dialect)
    file = checkpoint.json_files.looked_up(MODELOPT_FILE) if dialect.nested else None
    return None if file is None else _in(MODELOPT_FILE, (), file, dialect)


def _in(file: str, path: tuple[str, ...], config: Mapping[str, Any], dialect: Dialect) -> Place:
    keys, inner = dialect.keys, config.get("quantization")
    if dialect.nested and config.get("quant_algo") is None and isinstance(inner, Mapping):
        path, config, keys = (*path, "quantization"), inner, dialect.nested
    return Place(file, path, next((key for key in keys if key in config), keys[0]))


def config_at(checkpoint: Checkpoint, place: Place) -> Mapping[str, Any]:
    """The object that holds the list."""
    value: Any = _root(checkpoint, place)
    for key in place.path:
        value = value[key]
    found: Mapping[str, Any] = value
    return found


def entries_at(checkpoint: Checkpoint, place: Place) -> tuple[str, ...]:
    """The list as it is written; what is no text in it is left out."""
    return entries(config_at(checkpoint, place).get(place.key))


def entries(value: object) -> tuple[str, ...]:
    """The texts of a JSON list, none of anything else."""
    return tuple(entry for entry in value if isinstance(entry, str)) if isinstance(value, list) else ()


def with_list(checkpoint: Checkpoint, place: Place, entries: Sequence[str], all_linear: bool) -> Checkpoint:
    """The checkpoint with another list; with `all_linear` its config groups target every linear."""
    edited: dict[str, Any] = {**config_at(checkpoint, place), place.key: list(entries)}
    if all_linear:
        groups = edited["config_groups"].items()
        edited["config_groups"] = {name: {**group, "targets": ["Linear"]} for name, group in groups}
    changed = _set(_root(checkpoint, place), place.path, edited)
    if place.file == CONFIG:
        return replace(checkpoint, config=changed)
    content = {place.file: json.dumps(changed).encode()}
    return replace(checkpoint, json_files=JsonFiles(checkpoint.id, content, content.__getitem__, content))


def _root(checkpoint: Checkpoint, place: Place) -> Mapping[str, Any]:
    return checkpoint.config if place.file == CONFIG else checkpoint.json_files[place.file]


def _set(root: Mapping[str, Any], path: tuple[str, ...], value: dict[str, Any]) -> dict[str, Any]:
    if not path:
        return value
    return {**root, path[0]: _set(root[path[0]], path[1:], value)}


def matches(config: QuantConfig, entry: str, name: str) -> bool:
    """Whether one entry of the list matches a name; one that is no pattern matches nothing."""
    try:
        return config.leaves_dense(entry, name)
    except (Refused, NotModelled):
        return False
