"""Which values a config class's field takes.

Expected values: huggingface_hub 1.33.0 `dataclasses.py`, `type_validator`.
"""

from typing import Any

import pytest

from dflash_audit.hf_config.field_types import Kind, fits
from dflash_audit.hf_config.read import as_engine_sees
from dflash_audit.refusal import Refused

OPTIONAL_INT: Kind = ["union", "int", "none"]
IDS: Kind = ["union", "int", ["list", "int"], "none"]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (128, "int"),
        (1e-6, "float"),
        (True, "bool"),
        (None, OPTIONAL_INT),
        ([1, 2], IDS),
        ([], ["list", "str"]),
        ({"a": 1}, ["dict", "str", "int"]),
        ("x", ["literal", "x", "y"]),
        ({"anything": [1]}, "any"),
    ],
)
def test_taken(value: Any, kind: Kind) -> None:
    assert fits(value, kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("128", "int"),
        (128.0, "int"),
        (True, "int"),
        (1, "float"),
        (0, "bool"),
        (None, "int"),
        ("128", OPTIONAL_INT),
        ([1, True], IDS),
        (["a", 1], ["list", "str"]),
        ("full_attention", ["list", "str"]),
        ({"a": "1"}, ["dict", "str", "int"]),
        (1, ["literal", True]),
        ([0.0, 1.0], ["tuple"]),
    ],
)
def test_not_taken(value: Any, kind: Kind) -> None:
    assert not fits(value, kind)


@pytest.mark.parametrize("model_type", ["qwen3", "muse_glimmer_assistant"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("architectures", "DFlashDraftModel"),
        ("architectures", ["DFlashDraftModel", 1]),
        ("chunk_size_feed_forward", None),
        ("is_encoder_decoder", 1),
        ("problem_type", "drafting"),
        ("return_dict", "x"),
        ("transformers_version", 5),
    ],
)
def test_what_the_older_transformers_alone_checks(model_type: str, key: str, value: Any) -> None:
    """As transformers 5.12.1 and 5.19.0 do, asked for each."""
    config = {"model_type": model_type, "architectures": ["DFlashDraftModel"]}
    assert as_engine_sees(config, older=True)["architectures"] == ["DFlashDraftModel"]
    as_engine_sees(config | {key: value})
    with pytest.raises(Refused, match=key):
        as_engine_sees(config | {key: value}, older=True)
