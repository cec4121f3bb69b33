"""A number and its noun, for sentences that people read: `1 queue`, `2 queues`. Pure, and imports nothing of ours."""


def counted(number: int, one: str = "message", many: str = "", *, grouped: bool = False) -> str:
    """`1 message`, `2 messages`. `many` is given where an s at the end is not enough: `1 message waits`, `2 messages
    wait`. With `grouped`, thousands are set apart: `12,000 messages`."""
    shown = f"{number:,}" if grouped else f"{number}"
    return f"{shown} {one if number == 1 else many or f'{one}s'}"
