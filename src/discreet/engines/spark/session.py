"""A session on a Spark cluster, through Spark Connect; or on a Spark of this machine, which is
started for it.

A session has views and settings of its own. What is set here decides what values mean, so it is
read back: ANSI rules (what overflows is an error), UTC, texts that are what they say.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakSet

from discreet.errors import UsageError
from discreet.extras import missing, require
from discreet.noise.bits import SYSTEM
from discreet.policy.addresses import hide_passwords

REMOTE = "sc://"
LOCAL = ("local[", "local-cluster[")
HOW = "engine: {name: spark, at: sc://host:15002}, or at: local[2] for a Spark of this machine"
ANSI = "spark.sql.ansi.enabled"
_SETTINGS = {
    ANSI: "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # Privacy: or ${...} in a text of an analyst's is a variable of Spark's, of Java's or of the
    # environment, and empty if there is none: 'a${b}c' and 'ac' would be one text, which the proof
    # takes for two, and the question would be told secrets of the machine.
    "spark.sql.variable.substitute": "false",
}
_MEMORY = "1g"  # of each process of a Spark of this machine
_PORT, _ANSWERS = 15002, 10.0  # of Spark Connect; seconds in which a server answers
_RETRIES = 5  # of a call, within 20 seconds; by itself it would go on for ten minutes
_LEAVING = 5.0  # seconds in which sessions may say goodbye when the process ends
_lock = threading.Lock()
_open = WeakSet[Any]()  # sessions of this process
_local: dict[str, str] = {}  # addresses of those that this process has started


def connect(address: str | None) -> Any:
    """Open a new session; raise UsageError where there is no Spark, no Java or no package, with the
    command to type.
    """
    if address is None or not address.startswith((REMOTE, *LOCAL)):
        raise UsageError(f"The policy's engine needs an address: write {HOW}.")
    require("pyspark", what="engine: spark")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas, which is not used here, and of settings
        try:
            from pyspark.errors import PySparkException
            from pyspark.sql.connect.client.retries import DefaultPolicy
            from pyspark.sql.connect.session import SparkSession
        except ImportError:
            raise missing("pyspark", what="engine: spark") from None
        where = address if address.startswith(REMOTE) else _started(address)
        named = hide_passwords(address)
        try:
            _listens(where)
            session = SparkSession.builder.remote(where).create()
            session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
            for key, value in _SETTINGS.items():
                session.conf.set(key, value)
            wrong = [key for key, value in _SETTINGS.items() if session.conf.get(key) != value]
            _open.add(session)
        except (PySparkException, OSError, ValueError):
            raise UsageError(
                f"There is no Spark Connect server at {named}, or it cannot be reached."
            ) from None
    if wrong:
        raise UsageError(
            f"The Spark at {named} does not let {wrong[0]} be {_SETTINGS[wrong[0]]}. Allow it there."
        )
    return session


def _listens(address: str) -> None:
    """Raise OSError or ValueError where nobody listens."""
    found = urlsplit(address)
    with socket.create_connection((found.hostname or "", found.port or _PORT), _ANSWERS):
        pass


def _leave() -> None:
    """Close the sessions of a process that ends: one that is left open waits for a thread that is
    gone by then, for ever.
    """
    leaving = [Thread(target=session.stop, daemon=True) for session in list(_open)]
    for each in leaving:
        each.start()
    until = time.monotonic() + _LEAVING
    for each in leaving:
        each.join(max(0.0, until - time.monotonic()))
    for session in list(_open):
        session.client._channel.close()  # whether or not the cluster has heard of it


atexit.register(_leave)
os.register_at_fork(after_in_child=_open.clear)  # they are the parent's


def _started(master: str) -> str:
    """Start a Spark of this machine, and return its address: a port of the loopback that only the
    holder of a token can use.
    """
    with _lock:
        if master not in _local:
            if not _has_java():
                raise UsageError(
                    f"Spark on this machine ({master}) needs Java 17: apt install openjdk-17-jre-headless."
                )
            _local[master] = _start(master)
        return _local[master]


def _has_java() -> bool:
    """Return whether there is a Java where Spark looks for it."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java" if home is None else str(Path(home) / "bin/java")) is not None


def _start(master: str) -> str:
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise missing("pyspark", what="engine: spark") from None
    if _local:
        raise UsageError(
            f"A process can have one Spark of its own, and has {next(iter(_local))} already."
        )
    token = f"{SYSTEM.bits(128):032x}"
    folder = tempfile.mkdtemp(prefix="discreet-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {
        "spark.master": master,
        "spark.app.name": "discreet",
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.authenticate.token": token,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": _MEMORY,
        "spark.executor.memory": _MEMORY,
        "spark.executorEnv.PYTHONPATH": _python_path(),
        "spark.eventLog.enabled": "false",  # it has exact numbers
        "spark.local.dir": folder,  # of this account alone: what is shuffled is exact, too
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",  # its messages can print values
    }
    before = os.environ.get("PYTHONPATH")
    try:
        # for workers that this machine's Spark starts itself
        os.environ["PYTHONPATH"] = _python_path()
        context = SparkContext.getOrCreate(SparkConf().setAll(list(settings.items())))
        SparkSession(context)
        service = "org.apache.spark.sql.connect.service.SparkConnectService$"
        port = getattr(getattr(context._jvm, service), "MODULE$").localPort()
    except Exception:
        raise UsageError(
            f"Spark on this machine ({master}) does not start. Is Java 17 there? java -version"
        ) from None
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    return f"{REMOTE}localhost:{port}/;token={token}"


def _python_path() -> str:
    """Return the path on which a worker's Python finds this package."""
    return os.pathsep.join(
        [str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
