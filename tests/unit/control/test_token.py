"""Who may call."""

from pathlib import Path

import pytest

from rocketfleet.control.token import Access, Token, TokenError


def status(token: Token, access: Access, authorization: str | None = None, peer: str = "127.0.0.1") -> int:
    refusal = token.refusal(access, authorization, peer)
    return 200 if refusal is None else refusal[0]


def test_probes_and_metrics_are_open() -> None:
    for token in (Token(), Token("t")):
        assert status(token, Access.OPEN, peer="10.0.0.1") == 200


def test_without_a_token_nothing_can_be_changed_and_only_this_machine_may_look() -> None:
    for peer in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1", "", "nonsense"):
        assert status(Token(), Access.CHANGE, peer=peer) == 403
        assert status(Token(), Access.CHANGE, "Bearer ", peer=peer) == 403
    for peer in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"):
        assert status(Token(), Access.READ, peer=peer) == 200
    for peer in ("10.0.0.1", "fe80::1%eth0", "::ffff:10.0.0.1", "", "nonsense"):
        assert status(Token(), Access.READ, peer=peer) == 403


@pytest.mark.parametrize("access", [Access.READ, Access.CHANGE])
def test_with_a_token_it_is_needed(access: Access) -> None:
    token = Token("secret")
    assert status(token, access, "Bearer secret") == 200
    assert status(token, access, "bearer secret") == 200
    assert status(token, access) == 401
    assert status(token, access, "Basic secret") == 401
    assert status(token, access, "Bearer ") == 401
    assert status(token, access, "secret") == 401
    for wrong in ("Secret", "secret2", "secre", "sécret"):
        assert status(token, access, f"Bearer {wrong}") == 403


def test_an_empty_token_is_none() -> None:
    assert not Token("").is_set
    assert status(Token(""), Access.CHANGE, "Bearer ") == 403


def test_a_file_is_read_again_each_time(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    token = Token(file=path)
    assert status(token, Access.CHANGE, "Bearer one") == 200
    path.write_text("two\n")
    assert status(token, Access.CHANGE, "Bearer one") == 403
    assert status(token, Access.CHANGE, "Bearer two") == 200
    path.write_text(" \n")
    assert status(token, Access.CHANGE, "Bearer ") == 503
    path.unlink()
    assert status(token, Access.CHANGE, "Bearer two") == 503


def test_a_wrong_file_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(TokenError, match="empty"):
        Token(file=tmp_path / "empty")
    with pytest.raises(TokenError, match="No such file"):
        Token(file=tmp_path / "absent")


def test_it_does_not_show_itself(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("secret")
    for token in (Token("secret"), Token(file=path)):
        assert "secret" not in repr(token)
        for authorization in (None, "Bearer wrong", "Bearer secret2"):
            refusal = token.refusal(Access.CHANGE, authorization, "127.0.0.1")
            assert refusal is not None
            assert "secret" not in refusal[1].replace("Bearer", "")
