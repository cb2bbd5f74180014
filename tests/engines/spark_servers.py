"""Sail, which speaks Spark Connect without Java, stands in for Spark in quick tests: one server a
process.
"""

from __future__ import annotations

import os
from functools import cache

os.environ.setdefault("RUST_LOG", "error")


@cache
def _server() -> object:
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer(ip="127.0.0.1", port=0)
    server.start(background=True)
    return server


def sail() -> str:
    """The address of the server, on a port of the loopback that was free."""
    return f"sc://127.0.0.1:{_server().listening_address[1]}"  # type: ignore[attr-defined]
