"""A clock that stands still until a test sets it: monotonic or of the wall, to whoever is given it."""


class Clock:
    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Sleep without waiting."""
        self.now += seconds
