"""A proof is good for one pod, one call and a few minutes."""

from pathlib import Path

import pytest

from rocketfleet.control.endpoints import Endpoints
from rocketfleet.control.http_call import call
from rocketfleet.control.proof import WINDOW, Proof
from rocketfleet.control.server import ControlServer
from rocketfleet.control.token import Access, Token
from rocketfleet.worker.starting import Starting

NOW = 1_763_452_800.0


def said(
    authorization: str, *, pod: str | None = "uid-0", method: str = "POST", path: str = "/drain", now: float = NOW
) -> str | None:
    token = Token("secret", pod=pod, wall=lambda: now)
    refusal = token.refusal(Access.CHANGE, authorization, "10.0.0.1", method=method, path=path)
    assert refusal is None or refusal[0] == 403
    return None if refusal is None else refusal[1]


PROVED = Proof("secret", "uid-0").authorization("POST", "/drain", NOW)


def test_it_proves_the_call_it_was_made_for() -> None:
    assert said(PROVED) is None
    assert said(PROVED.replace("Proof", "proof")) is None
    assert "secret" not in PROVED
    assert "secret" not in repr(Proof("secret", "uid-0"))


def test_at_another_pod_or_for_another_call_it_proves_nothing() -> None:
    assert "for another pod" in str(said(PROVED, pod="uid-1"))
    assert "for another pod or call" in str(said(PROVED, path="/rebalance"))
    assert "for another pod or call" in str(said(PROVED, method="GET"))
    assert "another token" in str(said(Proof("other", "uid-0").authorization("POST", "/drain", NOW)))
    assert "POD_UID" in str(said(PROVED, pod=None))


def test_it_lasts_for_minutes_by_clocks_that_may_differ() -> None:
    for now in (NOW - WINDOW, NOW + WINDOW):
        assert said(PROVED, now=now) is None
    for now in (NOW - WINDOW - 1, NOW + WINDOW + 1):
        assert "do the nodes' clocks differ" in str(said(PROVED, now=now))
    later = PROVED.replace(str(int(NOW)), str(int(NOW) + 600))
    assert "the proof is wrong" in str(said(later, now=NOW + 600)), "the time is part of it"


@pytest.mark.parametrize("text", ["Proof", "Proof ", "Proof x y", "Proof 1", f"Proof {'9' * 40} x", "Proof ١ x"])
def test_what_is_no_proof_is_refused(text: str) -> None:
    assert said(text) is not None


async def test_the_token_does_not_travel(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    server = ControlServer(Endpoints(Starting("g", "me", 60.0), Token(file=file, pod="uid-0")).answer)
    _, port = await server.start("127.0.0.1", 0)
    try:
        for proof, status in ((Proof("secret", "uid-1"), 403), (Proof("secret", "uid-0"), 200)):
            assert (await call(f"127.0.0.1:{port}", "POST", "/drain", proof, 5.0)).status == status
        assert (await call(f"127.0.0.1:{port}", "POST", "/drain", "secret", 5.0)).status == 200, "a person's call"
    finally:
        await server.close(0.0)
