"""What is read of a target: its config, and the headers of the files that hold its head and its embedding."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dflash_audit.errors import Unreadable
from dflash_audit.sources.checkpoint import CONFIG, Origin, Tensor, parse_config, parse_object
from dflash_audit.sources.reading import Folder
from dflash_audit.sources.weight_files import INDEX, WEIGHTS, WeightFile, parse_index

HF_QUANT_CONFIG: Final = "hf_quant_config.json"

HEADS: Final = (
    "lm_head",
    "head",
    "language_model.lm_head",
    "model.language_model.lm_head",
    "model.lm_head",
    "thinker.lm_head",
    "llm.lm_head",
    "text_model.lm_head",
)
"""Full names of the language model's head, as checkpoints spell it; `head` is DeepSeek-V4's.

Source, of this table and the next: the `load_weights` and the weights mappers of SGLang 0.5.23
`srt/models`. The heads and embeddings of MTP layers, of other towers and of talkers have longer names.
"""

EMBEDDINGS: Final = (
    "model.embed_tokens",
    "embed_tokens",
    "embed",
    "model.language_model.embed_tokens",
    "language_model.model.embed_tokens",
    "language_model.embed_tokens",
    "model.model.embed_tokens",
    "thinker.model.embed_tokens",
    "llm.model.embed_tokens",
    "llm.embed_tokens",
    "text_model.model.embed_tokens",
    "model.text_model.embed_tokens",
    "model.word_embeddings",
    "language_model.model.word_embeddings",
    "model.language_model.word_embeddings",
    "model.model.word_embeddings",
    "backbone.embeddings",
    "model.embeddings",
    "language_model.backbone.embeddings",
)
"""Full names of its token embedding: `embed` is DeepSeek-V4's, `word_embeddings` Bailing's, `embeddings`
Nemotron-H's."""


@dataclass(frozen=True, slots=True)
class TargetFiles:
    """A target's files as they are.

    `hf_quant_config` is the content of the file of that name, None without it.
    `tensors` are those of its head and its embedding, None where it has no safetensors
    file. `bytes_read` counts all that was read.
    """

    origin: Origin
    config: Mapping[str, Any]
    hf_quant_config: Mapping[str, Any] | None
    tensors: tuple[Tensor, ...] | None
    bytes_read: int


def read_target_files(folder: Folder) -> TargetFiles:
    """Read what is looked at of a target.

    Raises `Unreadable`: no-config, bad-config, bad-json, bad-index, malformed-header,
    unreadable-file, and what the folder raises.
    """
    if not folder.holds(CONFIG):
        raise Unreadable("no-config", folder.name, f"no {CONFIG}, which a target has to have")
    small = [name for name in (CONFIG, HF_QUANT_CONFIG, INDEX) if folder.holds(name)]
    content = dict(zip(small, folder.read_small(small), strict=True))
    files = _files_of_interest(folder, content.get(INDEX))
    headers = [_readable(file) for file in folder.read_headers(files)] if files else []
    quantized = content.get(HF_QUANT_CONFIG)
    told = f"{folder.name}/{HF_QUANT_CONFIG}"
    return TargetFiles(
        folder.origin,
        parse_config(content[CONFIG], f"{folder.name}/{CONFIG}"),
        None if quantized is None else parse_object(quantized, "bad-json", told),
        None if files is None else tuple(_tensors_of_interest(headers)),
        sum(map(len, content.values())) + sum(file.bytes_read for file in headers),
    )


def of_one(modules: Sequence[str], tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors of the first of the modules that has any."""
    stored = {_module(tensor.name) for tensor in tensors}
    first = next((module for module in modules if module in stored), None)
    return tuple(tensor for tensor in tensors if _module(tensor.name) == first)


def _module(name: str) -> str:
    return name.rpartition(".")[0]


def _of_interest(name: str) -> bool:
    return _module(name) in HEADS or _module(name) in EMBEDDINGS


def _files_of_interest(folder: Folder, index: bytes | None) -> Sequence[str] | None:
    """The weight files to look into: by the index those that hold what is wanted, else all; None for none.

    A file that the index names and that is not there is not looked into: a folder may
    hold a part of a target.
    """
    there = [name for name in folder.names if name.endswith(WEIGHTS) and not name.startswith(".")]
    if index is None:
        return [name for name in there if folder.holds(name)] or None
    weight_map = parse_index(index, f"{folder.name}/{INDEX}")
    wanted = sorted({file for name, file in weight_map.items() if _of_interest(name)})
    return wanted if all(map(folder.holds, wanted)) else None


def _readable(file: WeightFile | Unreadable) -> WeightFile:
    if isinstance(file, Unreadable):
        raise file
    return file


def _tensors_of_interest(files: Iterable[WeightFile]) -> list[Tensor]:
    return [
        Tensor(name, dtype, shape, file.name)
        for file in files
        for name, (dtype, shape) in sorted(file.header.layout.items())
        if _of_interest(name)
    ]
