def command(a: str) -> None:
    """x"""
