"""A call to one pod's control port, proved without sending the token.

The port speaks no TLS, and a pod's address may be another pod's by the time it is called. So what is sent is an HMAC of
the pod's uid, the method, the path and the time, keyed with the group's token: at any other pod, for any other call,
and some minutes later it is worth nothing.

    Authorization: Proof 1763452800 9f86d081884c7d65…

A worker whose clock differs by more says what time it has, and proves that in its turn: keyed with the same token, and
for the very call that it refuses. So the caller may believe it, and prove the call once more for that time. Who does
not have the token cannot have proofs made for a time that he likes.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass, field

SCHEME = "proof"
WINDOW = 300.0  # seconds for which a proof is good
_CLOCK = re.compile(rb"Here it is ([0-9]{1,12}) ([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Proof:
    """A caller's: the group's token, the uid of the pod that is meant, and which image that runs, if that is known."""

    token: str = field(repr=False)
    pod: str
    image: str | None = None

    def authorization(self, method: str, path: str, now: float) -> str:
        """The header's value for one call at this time of day."""
        seconds = int(now)
        return f"Proof {seconds} {_digest(self.token.encode(), self.pod, method, path, seconds)}"

    def time_told(self, answer: bytes, method: str, path: str, now: float) -> float | None:
        """The time of day at the worker, where it has refused the call that was proved for `now` because of that."""
        found = _CLOCK.search(answer)
        if found is None:
            return None
        refused = _digest(self.token.encode(), self.pod, method, path, int(now))
        told = _digest(self.token.encode(), self.pod, "clock", refused, int(found[1]))
        return float(found[1]) if hmac.compare_digest(told.encode(), found[2]) else None


def refusal(given: str, token: bytes, pod: str | None, method: str, path: str, now: float) -> str | None:
    """Why what was given proves nothing, as a sentence; None: it is a proof."""
    if pod is None:
        return "this worker does not know its pod's uid (POD_UID): send the token itself"
    time, _, digest = given.partition(" ")
    if not (time.isascii() and time.isdecimal() and len(time) <= 12):
        return "a proof is a time in seconds and a digest"
    if not hmac.compare_digest(
        digest.strip().encode("latin-1", "replace"), _digest(token, pod, method, path, int(time)).encode()
    ):
        return "the proof is wrong: it was made with another token, or for another pod or call"
    if abs(now - int(time)) > WINDOW:
        clock = f"{int(now)} {_digest(token, pod, 'clock', digest.strip(), int(now))}"
        return (
            f"the proof was made {now - int(time):.0f} s ago by this node's clock: do the nodes' clocks differ? "
            f"Here it is {clock}"
        )
    return None


def _digest(token: bytes, pod: str, method: str, path: str, seconds: int) -> str:
    return hmac.new(token, f"{pod}\n{method}\n{path}\n{seconds}".encode(), hashlib.sha256).hexdigest()
