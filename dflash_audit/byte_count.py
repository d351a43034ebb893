"""Numbers of bytes as a person reads them."""


def byte_count(number: int) -> str:
    """`number` bytes in the unit that suits it: 512 B, 9.9 kB, 3.85 GB."""
    size = float(number)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"
