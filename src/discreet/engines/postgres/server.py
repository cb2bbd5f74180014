"""Connect to a Postgres server, and replace its errors by ours: its messages can print values, ours
do not.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Timer
from typing import TYPE_CHECKING, Any

from discreet.engines.limits.overrun import Overrun
from discreet.errors import EngineFailure, UsageError
from discreet.extras import missing

if TYPE_CHECKING:
    from psycopg import Connection

    Link = Connection[tuple[object, ...]]

_log = logging.getLogger("discreet.engine")
READER = "discreet_reader"  # the role that runs questions, if the policy names none
SCHEMA = "discreet"  # the number of a snapshot follows
MANIFEST = "#manifest"
PUBLIC_TABLES = "#public"
_SETTINGS = {
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "extra_float_digits": "1",
    "transform_null_equals": "off",
    "jit": "off",  # compiling takes longer than most questions
}
ALIVE: dict[str, Any] = {  # notice within half a minute that the machine is gone
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_OLDEST = 140000  # from here on EXTRACT is exact
# The errors of too much time, memory or disk, or of the server's own limits.
_TOO_MUCH = ("57014", "53")
ON_A_ROW = "22"  # the class of errors that a value causes


def schema_of(number: int) -> str:
    return f"{SCHEMA}_{number}"


def twin_of(number: int) -> str:
    """Return the schema of a snapshot's empty twin: the same tables without rows."""
    return f"{SCHEMA}_{number}_empty"


def reader_address(at: str, reader: str | None) -> str:
    """Return the address by which questions are run: the policy's, or else `at` with the role
    `discreet_reader`.
    """
    if reader is not None:
        return reader
    from psycopg import Error
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        parts = conninfo_to_dict(at)
    except Error:  # its message may quote the password
        raise UsageError(
            "engine.at is no address that PostgreSQL reads. In a password write %25 for a percent sign."
        ) from None
    parts.pop("password", None)
    return make_conninfo("", **{**parts, "user": READER})


def connect(address: str, *, what: str) -> Link:
    """Open a connection with our settings; raise UsageError, with one sentence, if that fails."""
    try:
        import psycopg
    except ImportError:
        raise missing("psycopg", what="The engine postgres") from None
    try:
        connection = psycopg.connect(
            address, connect_timeout=10, autocommit=True, prepare_threshold=None, **ALIVE
        )
    except psycopg.Error as error:
        _log.error("Postgres cannot be reached (%s): %s.", what, type(error).__name__)
        raise UsageError(
            f"The Postgres database cannot be reached as {what}. Check the address, role and server."
        ) from None
    try:
        for setting, value in _SETTINGS.items():
            connection.execute("SELECT set_config(%s, %s, false)", [setting, value])
        _require_server(connection)
    except psycopg.Error as error:
        connection.close()
        _log.error("Postgres cannot be set up (%s): %s.", what, type(error).__name__)
        raise UsageError(
            f"The Postgres database does not answer as {what}. Look at the server's log."
        ) from None
    except UsageError:
        connection.close()
        raise
    return connection


def _require_server(connection: Link) -> None:
    version = connection.info.server_version
    if version < _OLDEST:
        raise UsageError(
            f"The engine postgres needs version 14 or later; the server has {version // 10000}."
        )
    if connection.info.parameter_status("server_encoding") != "UTF8":
        raise UsageError(
            "The engine postgres needs a database of the encoding UTF8: createdb -E UTF8."
        )


@contextmanager
def one_sentence(sql: str) -> Iterator[None]:
    """Replace errors of the server: by Overrun if it took too much time or memory, by RowFailure if
    a value caused it, else by EngineFailure.
    """
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        state = error.sqlstate or ""
        _log.error("%s (%s) in: %s", type(error).__name__, state or "no state", sql)
        if state.startswith(_TOO_MUCH):
            raise Overrun from None
        if state.startswith(ON_A_ROW):
            raise RowFailure from None
        raise EngineFailure from None


@contextmanager
def cut_off(connection: Link, seconds: float) -> Iterator[None]:
    """Cut a connection off after so many seconds, and raise Overrun: a server that hangs keeps to
    no statement_timeout.
    """
    import psycopg

    done = Event()

    def cut() -> None:
        done.set()
        with (
            suppress(OSError, psycopg.Error),
            socket.socket(fileno=os.dup(connection.fileno())) as same,
        ):
            same.shutdown(socket.SHUT_RDWR)

    timer = Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (EngineFailure, psycopg.Error):
        if done.is_set():
            raise Overrun from None
        raise
    finally:
        timer.cancel()
        timer.join()  # its socket may be another one's from here on


class RowFailure(EngineFailure):
    """The engine failed on a value. The careful form of the same query cannot fail so."""
