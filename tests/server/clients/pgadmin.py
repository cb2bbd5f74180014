"""pgAdmin by what its pages call: it connects, opens the tree down to a table, and runs its query
tool.
"""

import builtins
import importlib.util
import logging
import os
import sys
import time
from pathlib import Path

from told import (
    BOUND,
    DATABASE,
    GROUPS,
    HOST,
    PASSWORD,
    PORT,
    ROWS,
    SLOW,
    USER,
    VALUE,
    cancelling,
    say,
)

HOME = Path(os.environ["PGADMIN_HOME"])
builtins.SERVER_MODE = False
sys.path.insert(0, importlib.util.find_spec("pgadmin4").submodule_search_locations[0])
import config  # noqa: E402

for name, value in {
    "DATA_DIR": str(HOME),
    "LOG_FILE": str(HOME / "log"),
    "SQLITE_PATH": str(HOME / "db"),
    "SESSION_DB_PATH": str(HOME / "sessions"),
    "STORAGE_DIR": str(HOME / "storage"),
    "KERBEROS_CCACHE_DIR": str(HOME / "kerberos"),
    "AZURE_CREDENTIAL_CACHE_DIR": str(HOME / "azure"),
    "MASTER_PASSWORD_REQUIRED": False,
    "USE_OS_SECRET_STORAGE": False,
    "WTF_CSRF_ENABLED": False,
    "UPGRADE_CHECK_ENABLED": False,
}.items():
    setattr(config, name, value)
from pgadmin import create_app  # noqa: E402

app = create_app()
app.config["WTF_CSRF_ENABLED"] = False
app.PGADMIN_INT_KEY, app.PGADMIN_RUNTIME = "", False
app.run_before_app_start()
page = app.test_client()


def call(method, path, body=None):
    reply = page.open(path, method=method, json=body)
    assert reply.status_code == 200, (path, reply.status_code, reply.get_data(as_text=True)[:2000])
    return reply.get_json(silent=True)


call("GET", "/browser/")
settings = [
    {"name": "options", "value": "-c discreet.epsilon=0.25"},
    {"name": "sslmode", "value": "prefer"},
]
server = {"name": "town", "host": HOST, "port": PORT, "db": DATABASE, "username": USER, "gid": 1}
server |= {
    "save_password": 0,
    "connect_now": False,
    "sslmode": "prefer",
    "connection_params": settings,
}
number = call("POST", "/browser/server/obj/1/", server)["node"]["_id"]
assert call("POST", f"/browser/server/connect/1/{number}", {"password": PASSWORD})["success"]
[database] = [each["_id"] for each in call("GET", f"/browser/database/nodes/1/{number}/")["data"]]
call("POST", f"/browser/database/connect/1/{number}/{database}", {})
[schema] = [
    each["_id"] for each in call("GET", f"/browser/schema/nodes/1/{number}/{database}/")["data"]
]
inside = f"1/{number}/{database}/{schema}"
listed = call("GET", f"/browser/table/nodes/{inside}/")["data"]
[people] = [each["_id"] for each in listed if each["label"] == "people"]
call("GET", f"/browser/table/obj/{inside}/{people}")
columns = call("GET", f"/browser/column/obj/{inside}/{people}/")
assert "age" in [column["name"] for column in columns]
for kind in ("index", "primary_key", "foreign_key", "trigger", "rule"):
    call("GET", f"/browser/{kind}/nodes/{inside}/{people}/")
for kind in (
    "view",
    "function",
    "sequence",
    "type",
    "domain",
    "foreign_table",
    "mview",
    "collation",
):
    call("GET", f"/browser/{kind}/nodes/{inside}/")
assert "CREATE TABLE" in call("GET", f"/browser/table/sql/{inside}/{people}")
call("GET", f"/browser/table/stats/{inside}/{people}")
TOOL = 4711
login = {"user": USER, "role": None, "password": PASSWORD, "dbname": DATABASE}
call("POST", f"/sqleditor/initialize/sqleditor/{TOOL}/1/{number}/{database}", login)


def run(sql):
    """The rows, or what the tool shows instead."""
    call("POST", f"/sqleditor/query_tool/start/{TOOL}", {"sql": sql, "explain_plan": None})
    end = time.monotonic() + 90
    while time.monotonic() < end:
        reply = page.get(f"/sqleditor/poll/{TOOL}").get_json()
        if reply["errormsg"]:
            return reply["errormsg"]
        if reply["data"]["status"] != "Busy":
            return reply["data"]["result"]
        time.sleep(0.05)
    raise TimeoutError(sql)


first, again = run(GROUPS), run(GROUPS)
bound = run(BOUND.replace("$1", str(VALUE)))
refused = "42X01" if "SQL state: 42X01" in run(ROWS) else None


def cancel():
    with app.test_client() as other:
        for cookie in page._cookies.values():
            other._cookies[cookie._storage_key] = cookie
        other.post(f"/sqleditor/cancel/{TOOL}", json={})


thread = cancelling(cancel)
cancelled = run(SLOW)
thread.join()
logging.disable()
print()
say(
    tables=sorted(each["label"] for each in listed), first=first, again=again, bound=bound, refused=refused,
    cancelled="57014" if "cancel" in str(cancelled).lower() else cancelled, after=run(SLOW),
)  # fmt: skip
sys.stdout.flush()
os._exit(0)
