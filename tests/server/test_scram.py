"""SCRAM: the published example, a client of our own, every wrong message, and the same answer for
nobody.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from discreet.server import scram
from discreet.server.scram import Exchange, Malformed, Verifier

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def client_proof(password: str, first_bare: str, reply: str, header: bytes) -> bytes:
    """The client's last message, computed as RFC 5802 says, by itself."""
    fields = dict(part.split("=", 1) for part in reply.split(","))
    salted = hashlib.pbkdf2_hmac(
        "sha256", scram.prepare(password), base64.b64decode(fields["s"]), int(fields["i"])
    )
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    without = f"c={base64.b64encode(header).decode()},r={fields['r']}"
    covered = f"{first_bare},{reply},{without}".encode()
    signature = hmac.digest(hashlib.sha256(client_key).digest(), covered, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return f"{without},p={base64.b64encode(proof).decode()}".encode()


def login(
    exchange: Exchange, password: str, *, header: bytes = b"n,,", bound: bytes = b""
) -> bytes | None:
    bare = "n=,r=rOprNGfwEbeRWgbNEkqO"
    reply = exchange.first(header + bare.encode()).decode()
    return exchange.final(client_proof(password, bare, reply, header + bound))


def test_the_example_of_rfc_7677(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scram, "fresh_text", lambda _: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    exchange = Exchange(Verifier.of("pencil", salt=SALT, iterations=4096))
    reply = exchange.first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert (
        reply
        == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = exchange.final(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_right_password_only() -> None:
    verifier = Verifier.of("correct horse battery")
    assert login(Exchange(verifier), "correct horse battery") is not None
    assert login(Exchange(verifier), "correct horse batter") is None
    assert verifier.matches("correct horse battery")
    assert not verifier.matches("correct horse batterz")


def test_a_verifier_is_read_as_it_was_written() -> None:
    verifier = Verifier.of("correct horse battery")
    assert Verifier.parse(str(verifier)) == verifier
    assert "correct" not in str(verifier)
    for wrong in (
        "",
        "a$b$c",
        str(verifier).replace("SHA-256", "SHA-1"),
        str(verifier).replace("10000", "10"),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            Verifier.parse(wrong)


def test_nobodys_salt_stays_and_no_password_fits() -> None:
    first, again = Verifier.nobodys("eve", b"secret"), Verifier.nobodys("eve", b"secret")
    assert first == again
    assert first.salt != Verifier.nobodys("mallory", b"secret").salt
    assert first.salt != Verifier.nobodys("eve", b"other").salt
    assert (len(first.salt), first.iterations) == (scram.SALT_BYTES, scram.ITERATIONS)
    assert login(Exchange(first), "whatever it is") is None


def test_channel_binding() -> None:
    verifier, header = Verifier.of("correct horse battery"), b"p=tls-server-end-point,,"
    exchange = Exchange(verifier, binding=b"hash", offers_binding=True)
    assert login(exchange, "correct horse battery", header=header, bound=b"hash") is not None
    exchange = Exchange(verifier, binding=b"hash", offers_binding=True)
    assert login(exchange, "correct horse battery", header=header, bound=b"another") is None
    for offered, flag in (
        (True, b"y"),
        (False, b"p=tls-server-end-point"),
        (False, b"x"),
        (False, b""),
    ):
        with pytest.raises(Malformed):
            Exchange(verifier, offers_binding=offered).first(flag + b",,n=,r=abc")
    with pytest.raises(Malformed):
        Exchange(verifier, binding=b"hash").first(b"n,,n=,r=abc")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n",
        b"n,",
        b"n,,",
        b"n,,n=",
        b"n,,r=abc",
        b"n,,n=,r=",
        b"n,,n=,r=a\x01",
        b"\xff",
        b"n,b,n=,r=a",
    ],
)
def test_first_messages_that_are_none(message: bytes) -> None:
    with pytest.raises(Malformed):
        Exchange(Verifier.nobodys("eve", b"")).first(message)


def test_last_messages_that_are_none() -> None:
    for message in (
        b"",
        b"c=biws",
        b"c=biws,r=x",
        b"c=biws,r=x,p=AA==",
        b"c=!,r=x,p=AA==",
        b"c=biws,r=x,p=\xff",
    ):
        exchange = Exchange(Verifier.nobodys("eve", b""))
        exchange.first(b"n,,n=,r=abc")
        with pytest.raises(Malformed):
            exchange.final(message)


@pytest.mark.parametrize(
    ("password", "prepared"),
    [
        ("I\u00adX", "IX"),
        ("user", "user"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
        ("\x07", "\x07"),
    ],
)
def test_saslprep_by_its_examples(password: str, prepared: str) -> None:
    """RFC 4013, section 3; what it forbids is taken as it is."""
    assert scram.prepare(password) == prepared.encode()
