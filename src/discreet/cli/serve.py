"""The command `serve`: answer analysts over the Postgres protocol and over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.question import Policy, open_curator
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.server.tls import Tls


def register(app: typer.Typer) -> None:
    app.command()(serve)


def serve(
    policy: Policy,
    postgres: Annotated[
        str,
        typer.Option(help="The address for Postgres clients: :5433 (this machine), 0.0.0.0:5433."),
    ] = ":5433",
    http: Annotated[
        str | None,
        typer.Option(help="The address for browsers and HTTP programs: :8080, or 0.0.0.0:8080."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="Let pages of this origin (https://host) ask by token; may be repeated."),
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-proxy",
            help="HTTP requests come from a proxy on this machine, which does the TLS.",
        ),
    ] = False,
    certificate: Annotated[
        Path | None, typer.Option(help="TLS: the certificate, a PEM file.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="TLS: its key, a PEM file of mode 0600.")] = None,
    make_certificate: Annotated[
        bool,
        typer.Option(
            "--make-certificate",
            help="TLS: use a certificate beside the ledger; make it if it is not there.",
        ),
    ] = False,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="How many questions run at the same time.")
    ] = 4,
) -> None:
    """Serve analysts until Ctrl-C or SIGTERM: Postgres clients, and HTTP with --http. `discreet
    user` says who may log in.
    """
    import asyncio

    from discreet.server.limits import ServerLimits
    from discreet.server.log import log_to_stderr
    from discreet.server.serve import Address, Server
    from discreet.server.serve import serve as serve_until_stopped

    addresses = {
        "postgres": Address.parse(postgres),
        "http": None if http is None else Address.parse(http),
    }
    curator = open_curator(policy)
    tls = _tls(curator.policy.ledger, certificate, key, make=make_certificate)
    for door, address in addresses.items():
        if address is not None:
            address.require_private(tls, proxied=behind_proxy and door == "http")
    log_to_stderr()
    name = curator.policy.path.stem

    def tell(door: str, host: str, port: int) -> None:
        if door == "http":
            shown = f"[{host}]" if ":" in host else host
            if behind_proxy:
                print(f"HTTP:      for the proxy, at {shown}:{port}", flush=True)
                return
            print(f"HTTP:      {'http' if tls is None else 'https'}://{shown}:{port}/", flush=True)
            return
        print(f'Postgres:  psql "host={host} port={port} dbname={name} user=NAME"', flush=True)
        print(
            "In psql:   SET discreet.epsilon = 0.1;   then ask.   SHOW discreet.budget;", flush=True
        )

    async def run() -> bool:
        server = Server(
            curator=curator,
            limits=ServerLimits(workers=workers),
            tls=tls,
            origins=allow_origin or (),
            proxied=behind_proxy,
        )
        return await serve_until_stopped(server, tell, **addresses)

    asyncio.run(run())


def _tls(ledger: Path, certificate: Path | None, key: Path | None, *, make: bool) -> Tls | None:
    from discreet.server import tls

    if make:
        certificate = ledger.with_name(f"{ledger.name}.tls.crt")
        key = ledger.with_name(f"{ledger.name}.tls.key")
        if not certificate.exists() or not key.exists():
            tls.make(certificate, key)
    if (certificate is None) != (key is None):
        raise UsageError("TLS needs both: --certificate and --key.")
    if certificate is None or key is None:
        return None
    return tls.load(certificate, key)
