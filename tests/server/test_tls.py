"""TLS: our own certificates, no listening in the open, no bytes before TLS, logins bound to the
certificate.
"""

from __future__ import annotations

import socket
import ssl
import stat
import struct
from pathlib import Path

import pytest

from discreet.cli import run
from discreet.errors import UsageError
from discreet.server import tls
from discreet.server.serve import Address
from server.running_server import open_town, running
from server.wire_client import Client, text

SSL_REQUEST = struct.pack("!II", 8, 80877103)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "a.crt", folder / "a.key"
    tls.make(certificate, key)
    return certificate, key


def context(certificate: Path) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(certificate))
    made.check_hostname = False
    return made


def test_a_made_certificate_vouches_for_this_machine(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    certificate, key = made
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    loaded = tls.load(certificate, key)
    assert loaded.context.minimum_version == ssl.TLSVersion.TLSv1_3
    assert loaded.binding is not None
    assert len(loaded.binding) == 32
    key.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        tls.load(certificate, key)
    key.chmod(0o600)
    for wrong in (tmp_path / "nothing", key):
        with pytest.raises(UsageError, match="cannot be used"):
            tls.load(wrong, key)


def test_nobody_listens_beyond_this_machine_without_tls(made: tuple[Path, Path]) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org", ""):
        address = Address.parse(f"{host}:5433" if host else ":5433")
        if host:
            with pytest.raises(UsageError, match="needs TLS"):
                address.require_private(None)
        else:
            assert address == Address(host="127.0.0.1", port=5433)
            address.require_private(None)
        address.require_private(tls.load(*made))
    for wrong in ("5433:x", "x", ":99999", "", ":-1"):
        with pytest.raises(UsageError):
            Address.parse(wrong)


def test_the_command_refuses_to_listen_in_the_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_town(tmp_path)
    policy = str(tmp_path / "town.yaml")
    assert run(["serve", policy, "--postgres", "0.0.0.0:0"]) == 2
    assert "needs TLS" in capsys.readouterr().err
    assert run(["serve", policy, "--certificate", "a.crt"]) == 2
    assert run(["serve", policy, "--postgres", "nonsense"]) == 2


def test_a_session_over_tls(made: tuple[Path, Path], tmp_path: Path) -> None:
    with running(open_town(tmp_path), tls=tls.load(*made)) as town:
        with Client(town.port, tls=context(made[0]), options="-c discreet.epsilon=0.5") as client:
            assert isinstance(client.socket, ssl.SSLSocket)
            assert client.socket.version() == "TLSv1.3"
            reply = client.query("SELECT age, COUNT(*) AS n FROM people GROUP BY age")
            assert len(reply.rows) == 121
            assert client.query("SHOW ssl").rows == [(b"on",)]
        old = context(made[0])
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            Client(town.port, tls=old)
        with Client(town.port) as plain:  # this machine may, without TLS
            assert plain.reply.status == "I"


def test_bytes_before_tls_end_the_connection(made: tuple[Path, Path], tmp_path: Path) -> None:
    """CVE-2021-23214: what somebody in between put there must never be read as if it had come
    encrypted.
    """
    early = struct.pack("!II", 8 + 30, 3 << 16) + text("user") + text("alice") + bytes(19)
    with running(open_town(tmp_path), tls=tls.load(*made)) as town:
        for injected in (b"\0", early, SSL_REQUEST):
            with socket.create_connection(("127.0.0.1", town.port), timeout=60) as client:
                client.sendall(SSL_REQUEST + injected)
                data = b""
                while part := client.recv(4096):
                    data += part
                assert data[:1] == b"E"
                assert b"before TLS" in data


def test_without_tls_the_answer_is_no(tmp_path: Path) -> None:
    with running(open_town(tmp_path)) as town, Client(town.port, login=False) as client:
        for request in (80877104, 80877103):  # GSS, then TLS
            client.send(struct.pack("!II", 8, request))
            assert client.exactly(1) == b"N"
        assert client.login("alice", "correct horse battery").status == "I"
