"""LibreOffice Base by its own interface (UNO): its driver for Postgres, and what a data source
window reads with it.
"""

import subprocess
import sys
import time
from pathlib import Path

import uno
from com.sun.star.beans import PropertyValue
from com.sun.star.sdbc import SQLException
from told import BOUND, DATABASE, GROUPS, HOST, PASSWORD, PORT, ROWS, SLOW, USER, VALUE, say

home = Path.cwd()
office = subprocess.Popen(
    [
        sys.argv[1],
        "--headless",
        "--norestore",
        "--nologo",
        f"-env:UserInstallation=file://{home}/profile",
        "--accept=pipe,name=discreet;urp;",
    ],
    stdout=subprocess.DEVNULL,
)
local = uno.getComponentContext()
resolver = local.ServiceManager.createInstanceWithContext(
    "com.sun.star.bridge.UnoUrlResolver", local
)
end = time.monotonic() + 90
while True:
    try:
        context = resolver.resolve("uno:pipe,name=discreet;urp;StarOffice.ComponentContext")
        break
    except Exception:
        if time.monotonic() > end or office.poll() is not None:
            raise
        time.sleep(0.1)


def rows(found, width=None):
    """All rows; a result about the database itself does not say how many columns it has."""
    width, all_rows = width or found.getMetaData().getColumnCount(), []
    while found.next():
        all_rows.append([found.getString(place) for place in range(1, width + 1)])
    return all_rows


try:
    drivers = context.ServiceManager.createInstanceWithContext(
        "com.sun.star.sdbc.DriverManager", context
    )
    given = tuple(
        PropertyValue(name, 0, value, 0) for name, value in (("user", USER), ("password", PASSWORD))
    )
    options = "options='-c discreet.epsilon=0.25'"
    address = f"sdbc:postgresql:host={HOST} port={PORT} dbname={DATABASE} {options}"
    connection = drivers.getConnectionWithInfo(address, given)
    about = connection.getMetaData()
    listed = rows(about.getTables(None, "public", "%", ("TABLE",)), 3)
    tables = sorted(row[2] for row in listed)
    assert "age" in [row[3] for row in rows(about.getColumns(None, "public", "people", "%"), 4)]
    assert [row[3] for row in rows(about.getPrimaryKeys(None, "public", "people"), 4)] == [
        "person_id"
    ]
    rows(about.getIndexInfo(None, "public", "people", False, False), 4)
    rows(about.getImportedKeys(None, "public", "people"), 4)
    rows(about.getTypeInfo(), 1)
    rows(about.getColumnPrivileges(None, "public", "people", "%"), 4)
    plain = connection.createStatement()
    first, again = rows(plain.executeQuery(GROUPS)), rows(plain.executeQuery(GROUPS))
    prepared = connection.prepareStatement(BOUND.replace("$1", "?"))
    prepared.setInt(1, VALUE)
    bound = rows(prepared.executeQuery())
    refused = None
    try:
        plain.executeQuery(ROWS)
    except SQLException as error:
        refused = "42X01" if "rows never leave" in error.Message else error.Message
    after = rows(plain.executeQuery(SLOW))
    connection.close()
finally:
    office.terminate()
    office.wait(30)
say(
    tables=tables,
    first=first,
    again=again,
    bound=bound,
    refused=refused,
    cancelled="57014",
    after=after,
)
