"""The tables behind docs/keys.md."""

from collections import Counter
from collections.abc import Iterable

import pytest

from dflash_audit.diagnosis import unread_keys, unread_keys_0_5_19, vllm_unread_keys
from dflash_audit.diagnosis.unread_keys import UnreadKey


@pytest.mark.parametrize(
    "table",
    [unread_keys.UNREAD, unread_keys_0_5_19.UNREAD, unread_keys_0_5_19.INSTEAD, vllm_unread_keys.UNREAD],
    ids=["sglang", "sglang-0.5.19", "instead", "vllm"],
)
def test_rows_of_one_key_say_when_they_hold(table: Iterable[UnreadKey]) -> None:
    """No two rows of a key hold for the same draft, or a reader could not tell which counts."""
    said = Counter((row.key, row.when) for row in table)
    assert [row for row, times in said.items() if times > 1] == []


def test_what_stands_instead_differs_in_its_mend() -> None:
    of_any = {row.key: row for row in unread_keys.UNREAD}
    assert {row.key for row in unread_keys_0_5_19.INSTEAD} == {
        "attention_value_scale",
        "add_swa_attention_sink_bias",
        "attention_sink_bias",
        "rope_parameters.partial_rotary_factor",
    }
    for row in unread_keys_0_5_19.INSTEAD:
        assert row.mend != of_any[row.key].mend
        assert "SGLang 0.5.23" in row.mend
