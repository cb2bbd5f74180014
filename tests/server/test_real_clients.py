"""Real clients at the Postgres door: each looks, asks, asks again, is refused, cancels; charges to
the last digit.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.server.users import UserFile
from server.running_server import PASSWORD, POLICY, Running, open_town, running

ROOT = Path(__file__).parent.parent.parent
SCRIPTS = Path(__file__).parent / "clients"
CLIENTS = ROOT / ".venvs" / "clients" / "bin" / "python"
SUPERSET = ROOT / ".venvs" / "superset" / "bin" / "python"
PGADMIN = ROOT / ".venvs" / "pgadmin" / "bin" / "python"
NODE = ROOT / ".venvs" / "node" / "node_modules"
QUARTER = Fraction(1, 4)
PATIENCE = 120
CANNOT_CANCEL = ("pg8000", "Polars by connectorx", "Polars by ADBC", "R", "LibreOffice")
PYTHONS = {
    "psycopg 3": ["psycopg3.py"],
    "psycopg 2": ["psycopg2_.py"],
    "asyncpg": ["asyncpg_.py"],
    "pg8000": ["pg8000_.py"],
    "SQLAlchemy and pandas": ["sqlalchemy_.py"],
    "Polars by connectorx": ["frames.py", "connectorx"],
    "Polars by ADBC": ["frames.py", "adbc"],
    "ADBC": ["adbc.py"],
    "Ibis": ["ibis_.py"],
    "pgcli": ["pgcli_.py"],
}
SLOW = (
    "psqlODBC",
    "psqlODBC with cursors",
    "pgjdbc",
    "pgjdbc simple",
    "Superset",
    "R",
    "LibreOffice",
    "pgAdmin",
)

NAMES = [*PYTHONS, "node", "psql", *SLOW]


def missing(what: str, how: str) -> None:
    """Tell a developer what is not there; fail where everything must be."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
        f"{what} is missing, so it was NOT TRIED. {how}"
    )


@contextmanager
def held(curator: Any, begun: Path) -> Iterator[None]:
    """Let the first asking of the slow question be charged, and not come back until this ends."""
    ask, hold, once = curator.ask, threading.Event(), threading.Lock()

    def slow(sql: str, **rest: Any) -> Any:
        answer = ask(sql, **rest)
        if "slow" in sql and not begun.exists() and once.acquire(blocking=False):
            begun.touch()
            hold.wait(PATIENCE)
        return answer

    curator.ask = slow
    try:
        yield
    finally:
        hold.set()
        del curator.ask


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A town whose analysts are the clients."""
    shares = "".join(f"  {analyst_of(name)}: {{epsilon: 10}}\n" for name in NAMES)
    curator = open_town(tmp_path_factory.mktemp("town"), POLICY + shares)
    users = UserFile(curator.policy)
    for name in NAMES:
        users.add(analyst_of(name), password=PASSWORD)
    with running(curator) as server:
        yield server


def analyst_of(name: str) -> str:
    return name.lower().replace(" ", "_")


def told(town: Running, name: str, begun: Path) -> dict[str, Any]:
    """What a client is told. Its questions are its own: none is answered already because another
    asked it.
    """
    own = 100 + NAMES.index(name)
    return {
        "host": town.host,
        "port": town.port,
        "user": analyst_of(name),
        "password": PASSWORD,
        "groups": f"SELECT sex, COUNT(*) AS n FROM people WHERE age < {own} GROUP BY sex ORDER BY sex",
        "bound": "SELECT COUNT(*) AS n FROM people WHERE age > $1",
        "value": own - 70,
        "own": own,
        "slow": f"SELECT COUNT(*) AS slow FROM people WHERE smoker AND age < {own}",
        "rows": "SELECT * FROM people",
        "begun": str(begun),
    }


def seen(
    town: Running,
    name: str,
    command: list[str],
    folder: Path,
    *,
    patience: float = PATIENCE,
    **environment: str,
) -> dict[str, Any]:
    """Run a client's session, and return what it says that it saw."""
    begun = folder / "begun"
    if name in CANNOT_CANCEL:
        begun.touch()
    given = {
        **os.environ,
        **environment,
        "DISCREET_SESSION": json.dumps(told(town, name, begun)),
        "NO_COLOR": "1",
    }
    given |= {
        f"SESSION_{key.upper()}": str(value) for key, value in told(town, name, begun).items()
    }
    given.pop("PYTHONPATH", None)
    with held(town.server.curator, begun):
        done = subprocess.run(
            command,
            env=given,
            cwd=folder,
            capture_output=True,
            timeout=patience,
            stdin=subprocess.DEVNULL,
        )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check(town: Running, name: str, found: dict[str, Any]) -> None:
    """Three questions were paid for, whatever was asked again, and the answers are those that the
    ledger keeps.
    """
    curator, analyst = town.server.curator, analyst_of(name)
    entries = curator.ledger(analyst=analyst)
    assert sorted(entry.cost.amount for entry in entries) == [QUARTER] * 3
    kept = [
        curator.ask(entry.text, analyst=analyst, epsilon=0.25, dialect="postgres").table
        for entry in entries
    ]
    assert len(curator.ledger(analyst=analyst)) == 3
    answers = sorted(
        [[str(cell) for cell in row.values()] for row in table.to_pylist()] for table in kept
    )
    assert sorted([found["first"], found["bound"], found["after"]]) == answers
    assert found["again"] == found["first"]
    assert found.get("paged", found["first"]) == found["first"]
    assert found.get("piped", found["first"]) == found["first"]
    assert set(found["tables"]) == {"people", "visits", "places"}
    assert found["refused"] == "42X01"
    assert found["cancelled"] == "57014"


@pytest.mark.parametrize("name", PYTHONS)
def test_a_session_of_a_python_client(town: Running, tmp_path: Path, name: str) -> None:
    if not CLIENTS.exists():
        missing(name, "Install it: make clients.")
    script, *rest = PYTHONS[name]
    check(town, name, seen(town, name, [str(CLIENTS), str(SCRIPTS / script), *rest], tmp_path))


def test_a_session_of_node(town: Running, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not NODE.exists():
        missing("node", "Install it: make clients.")
    check(
        town,
        "node",
        seen(town, "node", [str(node), str(SCRIPTS / "node_pg.js")], tmp_path, NODE_PATH=str(NODE)),
    )


def test_a_session_of_psql(town: Running, tmp_path: Path) -> None:
    psql = shutil.which("psql")
    if psql is None:
        missing("psql", "Install it: apt-get install postgresql-client.")
    given = told(town, "psql", tmp_path / "begun")
    script = tmp_path / "session.sql"
    script.write_text(PSQL.format(**given).replace("$1", ":value"), encoding="utf-8")
    address = f"host={given['host']} port={given['port']} user={given['user']} dbname=town"
    environment = {**os.environ, "PGPASSWORD": PASSWORD, "PGOPTIONS": "-c discreet.epsilon=0.25"}
    command = [str(psql), "-X", "-d", address, "--csv", "-t", "-q", "-v", "VERBOSITY=sqlstate"]
    done = subprocess.run(
        [*command, "-f", str(script)], env=environment, capture_output=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    parts = [part.strip().splitlines() for part in done.stdout.decode().split("--\n")]
    first, again, bound, paged, columns, tables, described = parts
    with held(town.server.curator, tmp_path / "begun"):
        waiting = subprocess.Popen(
            [*command, "-c", given["slow"]], env=environment, stderr=subprocess.PIPE
        )
        wait_for(tmp_path / "begun")
        waiting.send_signal(signal.SIGINT)
        cancelled = waiting.communicate(timeout=PATIENCE)[1].decode()
    after = subprocess.run(
        [*command, "-c", given["slow"]], env=environment, capture_output=True, timeout=PATIENCE
    )
    assert columns == ["sex,text", "n,bigint"]
    assert "age" in " ".join(described)
    found = {
        "tables": [line.split(",")[1] for line in tables],
        "first": [line.split(",") for line in first],
        "again": [line.split(",") for line in again],
        "bound": [line.split(",") for line in bound],
        "paged": [line.split(",") for line in paged],
        "after": [line.split(",") for line in after.stdout.decode().splitlines()],
        "refused": "42X01" if "42X01" in done.stderr.decode() else done.stderr.decode(),
        "cancelled": "57014" if "57014" in cancelled else cancelled,
    }
    check(town, "psql", found)


PSQL = """
\\set value {value}
{groups};
\\echo --
{groups};
\\echo --
{bound};
\\echo --
\\set FETCH_COUNT 1
{groups};
\\set FETCH_COUNT 0
\\echo --
{groups} \\gdesc
\\echo --
\\dt
\\echo --
\\d people
\\set ON_ERROR_ROLLBACK on
BEGIN;
{rows};
COMMIT;
"""


def wait_for(path: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < end, "the slow question did not begin"
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["psqlODBC", "psqlODBC with cursors"])
def test_a_session_by_odbc(town: Running, tmp_path: Path, name: str) -> None:
    if not CLIENTS.exists() or not list(Path("/usr/lib").glob("*/odbc/psqlodbcw.so")):
        missing(name, "Install it: make clients; apt-get install odbc-postgresql unixodbc.")
    more = ["UseDeclareFetch=1;Fetch=1;"] if "cursors" in name else []
    check(town, name, seen(town, name, [str(CLIENTS), str(SCRIPTS / "odbc.py"), *more], tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pgjdbc", "pgjdbc simple"])
def test_a_session_by_jdbc(town: Running, tmp_path: Path, name: str) -> None:
    java, driver = shutil.which("java"), Path("/usr/share/java/postgresql.jar")
    if java is None or not driver.exists():
        missing(name, "Install it: apt-get install default-jdk-headless libpostgresql-jdbc-java.")
    more = ["simple"] if "simple" in name else []
    command = [str(java), "-cp", str(driver), str(SCRIPTS / "Jdbc.java"), *more]
    check(town, name, seen(town, name, command, tmp_path))


@pytest.mark.slow
def test_a_dashboard_of_superset(town: Running, tmp_path: Path) -> None:
    """Ten charts cost ten questions; the second and third refresh are free, and show the same
    numbers.
    """
    if not SUPERSET.exists():
        missing("Superset", "Install it: make slow.")
    command = [str(SUPERSET), str(SCRIPTS / "superset_.py")]
    found = seen(town, "Superset", command, tmp_path, patience=1_500, SUPERSET_HOME=str(tmp_path))
    entries = town.server.curator.ledger(analyst=analyst_of("Superset"))
    assert [entry.cost.amount for entry in entries] == [QUARTER] * 10
    assert found["first"] == found["second"] == found["third"]
    assert [len(chart) for chart in found["first"]] == [2, 2, 4, 1, 1, 2, 1, 1, 1, 1]
    assert found["tables"] == ["people", "places", "visits"]
    assert json.loads(found["estimate"]) == {
        "result": [{"Start-up cost": "0.0", "Total cost": "0.25"}]
    }


@pytest.mark.slow
def test_a_session_of_r(town: Running, tmp_path: Path) -> None:
    """Its dplyr pipelines are the same questions as the SQL that was asked before."""
    rscript = shutil.which("Rscript")
    if rscript is None or not Path("/usr/lib/R/site-library/RPostgreSQL").exists():
        missing("R", "Install it: apt-get install r-base-core r-cran-dbplyr r-cran-rpostgresql.")
    check(
        town, "R", seen(town, "R", [str(rscript), "--vanilla", str(SCRIPTS / "dbplyr.R")], tmp_path)
    )


@pytest.mark.slow
def test_a_session_of_libreoffice(town: Running, tmp_path: Path) -> None:
    soffice, python = shutil.which("soffice"), Path("/usr/bin/python3")
    if soffice is None or not list(
        Path("/usr/lib/libreoffice").glob("program/libpostgresql-sdbc*")
    ):
        missing(
            "LibreOffice",
            "Install it: apt-get install libreoffice-base libreoffice-sdbc-postgresql python3-uno.",
        )
    found = seen(
        town, "LibreOffice", [str(python), str(SCRIPTS / "libreoffice.py"), str(soffice)], tmp_path
    )
    check(town, "LibreOffice", found)


@pytest.mark.slow
def test_a_session_of_pgadmin(town: Running, tmp_path: Path) -> None:
    if not PGADMIN.exists():
        missing("pgAdmin", "Install it: make slow.")
    command = [str(PGADMIN), str(SCRIPTS / "pgadmin.py")]
    check(
        town,
        "pgAdmin",
        seen(town, "pgAdmin", command, tmp_path, patience=600, PGADMIN_HOME=str(tmp_path)),
    )
