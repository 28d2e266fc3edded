"""Limits of requests, as DRF writes them: `1200/min`."""


def half(rate: str) -> str:
    """Half as many in the same time."""
    number, _, period = rate.partition("/")
    return f"{max(1, int(number) // 2)}/{period}"
