"""Numbers of bytes as a person reads them."""

import pytest

from dflash_audit.byte_count import byte_count


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (9_911, "9.9 kB"), (2_500_000, "2.5 MB"),
     (3_848_808_960, "3.85 GB"), (139 * 10**9, "139.00 GB")],
)  # fmt: skip
def test_units(number: int, text: str) -> None:
    assert byte_count(number) == text
