"""The model that a draft is made for, as far as its config.json and the headers of its head tell."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from dflash_audit.hf_config.text_config import language_table
from dflash_audit.sources.checkpoint import Origin, Tensor
from dflash_audit.sources.source import open_folder
from dflash_audit.sources.target_files import EMBEDDINGS, HEADS, TargetFiles, of_one, read_target_files

MOST: Final = 2**40
"""No size in a config is that large."""


@dataclass(frozen=True, eq=False)
class Target:
    """A target; each number is None where its config does not give it.

    `config` is the whole config.json as it was read, `text` its language part, which
    is the whole where it names none. `quantization_config` is what describes its
    quantization, in whichever file. `tensors` are those of its head and its
    embedding, None where there was no header to look at.
    """

    files: TargetFiles

    @property
    def origin(self) -> Origin:
        return self.files.origin

    @property
    def id(self) -> str:
        return self.files.origin.id

    @property
    def config(self) -> Mapping[str, Any]:
        return self.files.config

    @cached_property
    def text(self) -> Mapping[str, Any]:
        return language_table(self.config)

    @property
    def architectures(self) -> tuple[str, ...]:
        named = self.config.get("architectures")
        return tuple(name for name in named if isinstance(name, str)) if isinstance(named, list) else ()

    @property
    def model_type(self) -> str | None:
        """That of the language part."""
        named = self.text.get("model_type", self.config.get("model_type"))
        return named if isinstance(named, str) else None

    @property
    def num_hidden_layers(self) -> int | None:
        return self.number("num_hidden_layers")

    @property
    def hidden_size(self) -> int | None:
        return self.number("hidden_size")

    @property
    def vocab_size(self) -> int | None:
        return self.number("vocab_size")

    @property
    def tied(self) -> bool | None:
        """`tie_word_embeddings`, None where no part of the config says it."""
        for part in (self.text, self.config):
            if isinstance(said := part.get("tie_word_embeddings"), bool):
                return said
        return None

    @cached_property
    def quantization_config(self) -> Mapping[str, Any] | None:
        """Source: SGLang 0.5.23 `srt/configs/model_config.py`, `_parse_quant_hf_config`."""
        own = [part.get("quantization_config") for part in (self.config, self.text)]
        file = self.files.hf_quant_config
        inner = None if file is None else file.get("quantization", file)
        declared = (own[0], self.config.get("compression_config"), inner, own[1])
        return next((each for each in declared if isinstance(each, Mapping) and each), None)

    @property
    def quantization(self) -> str | None:
        """The quantization method, or what names it in its place; empty where nothing does."""
        declared = self.quantization_config
        if declared is None:
            return None
        named = declared.get("quant_method") or declared.get("quant_algo")
        return named if isinstance(named, str) else ""

    @property
    def tensors(self) -> tuple[Tensor, ...] | None:
        return self.files.tensors

    @property
    def head(self) -> tuple[Tensor, ...]:
        """The tensors of the language model's head, of one module alone."""
        return of_one(HEADS, self.tensors or ())

    @property
    def embedding(self) -> tuple[Tensor, ...]:
        """The tensors of its token embedding, of one module alone."""
        return of_one(EMBEDDINGS, self.tensors or ())

    def number(self, key: str) -> int | None:
        """A whole number of the language part's, above zero and of a size that such a number can have."""
        value = self.text.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            return None
        return value if 0 < value < MOST else None


def read_target(source: str) -> Target:
    """Read what is looked at of the target that `source` names: a folder, or a repo of the Hub.

    Raises `Unreadable`, as `open_folder` and `read_target_files` do.
    """
    return Target(read_target_files(open_folder(source)))
