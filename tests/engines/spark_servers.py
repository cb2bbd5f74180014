"""Sail, which speaks Spark Connect without Java, stands in for Spark in quick tests, one server a
process; and real Sparks of this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from discreet.engines.spark import session as sessions
from discreet.policy.engine import EngineChoice

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


def started(master: str) -> Iterator[EngineChoice]:
    """A Spark of this process, gone afterwards: a process can have one."""
    if shutil.which("java") is None:
        missing = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        missing(
            "Java is missing, so NO REAL SPARK WAS ASKED. Install it: apt-get install default-jre-headless."
        )
    from pyspark import SparkContext, java_gateway

    java_gateway.Popen = _popen
    yield EngineChoice(name="spark", at=master)
    sessions._local.clear()
    context = SparkContext._active_spark_context
    if context is not None:
        context.stop()
        SparkContext._gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None


def _popen(command: list[str], *, preexec_fn: object, **options: Any) -> subprocess.Popen[bytes]:
    """Start Java without code that runs between fork and exec: with it Python forks wholly, and
    what threads of gRPC have left to do at a fork does not always end well.
    """
    return subprocess.Popen(command, **options)
