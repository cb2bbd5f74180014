"""TLS 1.3: load the certificate of the doors, or make a self-signed one."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from discreet.errors import UsageError

_DAYS = 825  # for which a certificate that we make is valid


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """A TLS context, and the hash of its certificate, to which logins can be bound (RFC 5929,
    tls-server-end-point).
    """

    context: ssl.SSLContext
    binding: bytes | None = field(repr=False)


def load(certificate: Path, key: Path) -> Tls:
    """Read a certificate and its key from PEM files."""
    if key.exists() and key.stat().st_mode & 0o077:
        raise UsageError(f"{key} must be its owner's alone: chmod 600 {key}.")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(certificate, key)
        parsed = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError) as error:
        reason = "it does not fit its key"
        if isinstance(error, OSError) and error.strerror:
            reason = error.strerror
        raise UsageError(f"The certificate {certificate} cannot be used: {reason}.") from None
    return Tls(context=context, binding=_binding(parsed))


def _binding(certificate: x509.Certificate) -> bytes | None:
    """Return the certificate's hash, by the hash function of its signature; None if that has none.
    SHA-256 replaces MD5 and SHA-1.
    """
    used = certificate.signature_hash_algorithm
    if used is None:
        return None
    name = "sha256" if used.name in ("md5", "sha1") else used.name
    return hashlib.new(name, certificate.public_bytes(serialization.Encoding.DER)).digest()


def make(
    certificate: Path, key: Path, *, hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "::1")
) -> None:
    """Write a self-signed certificate, and its key (mode 0600)."""
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(
            x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(secret, hashes.SHA256())
    )
    private = secret.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(key, private, 0o600)
    _write(certificate, made.public_bytes(serialization.Encoding.PEM), 0o644)


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write(path: Path, content: bytes, mode: int) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(content)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None
