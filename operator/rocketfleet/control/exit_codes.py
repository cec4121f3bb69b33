"""How a worker ends, as a number. 2 is also click's for a wrong command line."""

from typing import Final

DRAINED: Final = 0
FAILED: Final = 1  # an error that nobody foresaw; its traceback is in the log
SETTINGS: Final = 2  # settings or handler are wrong: starting again would change nothing
NOT_JOINED: Final = 3  # no broker could be joined in time
NOT_CONFIRMED: Final = 4  # stopped, but the broker has not confirmed every offset: some messages come again
CUT_SHORT: Final = 5  # drained, every offset confirmed, but handlers were cut short: their messages come again


def combined(codes: list[int]) -> int:
    """The code of several processes together: what matters most for whoever reads it."""
    for code in (NOT_CONFIRMED, SETTINGS, NOT_JOINED):
        if code in codes:
            return code
    if not all(is_confirmed(code) for code in codes):
        return FAILED
    return CUT_SHORT if CUT_SHORT in codes else DRAINED


def is_confirmed(code: int) -> bool:
    """Whether it says that the broker has confirmed every offset."""
    return code in (DRAINED, CUT_SHORT)
