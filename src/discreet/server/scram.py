"""The server's half of SCRAM-SHA-256 (RFC 5802, RFC 7677): it checks a password without storing or
receiving it.

    SaltedPassword = PBKDF2(password, salt, iterations)
    StoredKey      = SHA256(HMAC(SaltedPassword, "Client Key"))
    ServerKey      = HMAC(SaltedPassword, "Server Key")

A thief of the stored verifier cannot log in with it. Logging in needs the client key, and the
verifier has only its hash.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import stringprep
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from discreet.server.fresh import fresh_bytes, fresh_text

ITERATIONS = 10_000
SALT_BYTES = 16
MOST_NONCE = 256  # letters; libpq sends 24
PLAIN = "SCRAM-SHA-256"
PLUS = "SCRAM-SHA-256-PLUS"  # bound to the TLS certificate


class Malformed(Exception):
    """A message that breaks the rules of SCRAM: the client is broken or hostile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """The stored form of a password, in the text that Postgres uses."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(
        cls, password: str, *, salt: bytes | None = None, iterations: int = ITERATIONS
    ) -> Verifier:
        salt = fresh_bytes(SALT_BYTES) if salt is None else salt
        salted = hashlib.pbkdf2_hmac("sha256", prepare(password), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        return cls(
            iterations=iterations,
            salt=salt,
            stored_key=hashlib.sha256(client_key).digest(),
            server_key=hmac.digest(salted, b"Server Key", "sha256"),
        )

    @classmethod
    def nobodys(cls, name: str, secret: bytes) -> Verifier:
        """Return a verifier that no password fits, for a user who does not exist. The same name
        always gets the same salt, as that of a user does.
        """

        def derived(purpose: bytes) -> bytes:
            return hmac.digest(secret, purpose + name.encode("utf-8", "surrogatepass"), "sha256")

        return cls(
            iterations=ITERATIONS,
            salt=derived(b"salt ")[:SALT_BYTES],
            stored_key=derived(b"stored "),
            server_key=derived(b"server "),
        )

    @classmethod
    def parse(cls, text: str) -> Verifier:
        scheme, parameters, keys = text.split("$")
        iterations, salt = parameters.split(":")
        stored_key, server_key = map(_decode, keys.split(":"))
        if (
            scheme != PLAIN
            or len(stored_key) != 32
            or len(server_key) != 32
            or int(iterations) < 4096
        ):
            raise ValueError
        return cls(
            iterations=int(iterations),
            salt=_decode(salt),
            stored_key=stored_key,
            server_key=server_key,
        )

    def __str__(self) -> str:
        keys = f"{_encode(self.stored_key)}:{_encode(self.server_key)}"
        return f"{PLAIN}${self.iterations}:{_encode(self.salt)}${keys}"

    def matches(self, password: str) -> bool:
        """Return True if this is the password. For the HTTP door, which receives passwords."""
        tried = Verifier.of(password, salt=self.salt, iterations=self.iterations)
        return hmac.compare_digest(tried.stored_key, self.stored_key)


class Exchange:
    """One login. `first` takes the client's first message, and `final` its proof; each returns the
    server's reply.
    """

    def __init__(
        self, verifier: Verifier, *, binding: bytes | None = None, offers_binding: bool = False
    ) -> None:
        """`binding` is the hash of our certificate, if the client chose the mechanism that is bound
        to it.
        """
        self._verifier = verifier
        self._binding = binding
        self._offers_binding = offers_binding
        self._header = b""
        self._nonce = ""
        self._covered = ""

    def first(self, message: bytes) -> bytes:
        flag, authority, rest = _split(_text(message), ",", 2)
        self._check_flag(flag)
        if authority and not authority.startswith("a="):
            raise Malformed("an authority without a=")
        self._header = f"{flag},{authority},".encode()
        fields = rest.split(",")
        # libpq sends an empty name, because only the name in the startup message counts.
        if len(fields) < 2 or not fields[0].startswith("n=") or not fields[1].startswith("r="):
            raise Malformed("no name or no nonce")
        nonce = fields[1][2:]
        if not 1 <= len(nonce) <= MOST_NONCE or any(not "!" <= letter <= "~" for letter in nonce):
            raise Malformed("a nonce that is too long, or not printable")
        self._nonce = nonce + fresh_text(18)
        reply = f"r={self._nonce},s={_encode(self._verifier.salt)},i={self._verifier.iterations}"
        self._covered = f"{rest},{reply}"
        return reply.encode()

    def _check_flag(self, flag: str) -> None:
        if self._binding is not None:
            if flag != "p=tls-server-end-point":
                raise Malformed("another channel binding than tls-server-end-point")
        elif flag == "y" and self._offers_binding:
            raise Malformed(
                "a client that was not told of channel binding: somebody stands between"
            )
        elif flag not in ("n", "y"):
            raise Malformed("channel binding where there is none")

    def final(self, message: bytes) -> bytes | None:
        """Return the server's signature, or None if the proof is wrong. Both take the same work."""
        without_proof, _, proof_text = _text(message).rpartition(",p=")
        fields = without_proof.split(",")
        if len(fields) < 2 or not fields[0].startswith("c=") or not fields[1].startswith("r="):
            raise Malformed("no binding or no nonce")
        proof = _decode_sent(proof_text)
        bound = hmac.compare_digest(
            _decode_sent(fields[0][2:]), self._header + (self._binding or b"")
        )
        same_nonce = hmac.compare_digest(fields[1][2:].encode(), self._nonce.encode())
        if len(proof) != 32:
            raise Malformed("a proof of another length")
        covered = f"{self._covered},{without_proof}".encode()
        signature = hmac.digest(self._verifier.stored_key, covered, "sha256")
        client_key = bytes(left ^ right for left, right in zip(proof, signature, strict=True))
        proved = hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key)
        reply = b"v=" + _encode(hmac.digest(self._verifier.server_key, covered, "sha256")).encode()
        return reply if bound & same_nonce & proved else None


def prepare(password: str) -> bytes:
    """Return a password as SASLprep (RFC 4013) normalizes it. A password that SASLprep forbids
    stays unchanged, as in libpq.
    """
    kept = [letter for letter in password if not stringprep.in_table_b1(letter)]
    mapped = "".join(" " if stringprep.in_table_c12(letter) else letter for letter in kept)
    normal = unicodedata.normalize("NFKC", mapped)
    forbidden = any(table(letter) for table in _FORBIDDEN for letter in normal)
    if not normal or forbidden or _mixes_directions(normal):
        return password.encode("utf-8", "surrogatepass")
    return normal.encode()


_FORBIDDEN: tuple[Callable[[str], bool], ...] = (
    stringprep.in_table_a1,
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def _mixes_directions(text: str) -> bool:
    if not any(map(stringprep.in_table_d1, text)):
        return False
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    return not ends or any(map(stringprep.in_table_d2, text))


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise Malformed("not UTF-8") from None


def _split(text: str, mark: str, times: int) -> list[str]:
    parts = text.split(mark, times)
    if len(parts) != times + 1:
        raise Malformed("too few fields")
    return parts


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _decode_sent(text: str) -> bytes:
    try:
        return _decode(text)
    except (binascii.Error, ValueError):
        raise Malformed("not base64") from None
