"""Superset: a dashboard of ten charts made by its REST API, and refreshed three times."""

import json
import os
import sys
from pathlib import Path

from told import DATABASE, HOST, PASSWORD, PORT, TOLD, USER, say

HOME = Path(os.environ["SUPERSET_HOME"])
CONFIG = HOME / "superset_config.py"
CONFIG.write_text(
    f"""
SECRET_KEY = {"k" * 42!r}
SQLALCHEMY_DATABASE_URI = "sqlite:///{HOME / "superset.db"}?check_same_thread=false"
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
PREVENT_UNSAFE_DB_CONNECTIONS = False
RATELIMIT_ENABLED = False
FEATURE_FLAGS = {{"ESTIMATE_QUERY_COST": True}}
"""
)
os.environ["SUPERSET_CONFIG_PATH"] = str(CONFIG)
os.environ["FLASK_APP"] = "superset"

import superset  # noqa: E402
from flask_migrate import upgrade  # noqa: E402
from superset.app import create_app  # noqa: E402

app = create_app()
with app.app_context():
    upgrade(directory=str(Path(superset.__file__).parent / "migrations"))
    app.appbuilder.add_permissions(update_perms=True)
    roles = app.appbuilder.sm
    roles.sync_role_definitions()
    roles.add_user("admin", "a", "b", "a@b", roles.find_role("Admin"), password="admin")
client = app.test_client()


def call(method, path, body=None, expected=(200, 201)):
    reply = client.open(f"/api/v1{path}", method=method, json=body, headers=HEADERS)
    assert reply.status_code in expected, (
        path,
        reply.status_code,
        reply.get_data(as_text=True)[:2000],
    )
    return reply.get_json()


HEADERS = {}
login = {"username": "admin", "password": "admin", "provider": "db", "refresh": False}
HEADERS["Authorization"] = f"Bearer {call('POST', '/security/login', login)['access_token']}"
address = f"postgresql+psycopg2://{USER}:{PASSWORD.replace(' ', '%20')}@{HOST}:{PORT}/{DATABASE}"
extra = {
    "engine_params": {
        "connect_args": {"options": "-c discreet.epsilon=0.25 -c discreet.rows=none"}
    },
    "cost_estimate_enabled": True,
}
database = call(
    "POST",
    "/database/",
    {
        "database_name": "town",
        "sqlalchemy_uri": address,
        "extra": json.dumps(extra),
        "expose_in_sqllab": True,
    },
)["id"]
call("POST", "/database/test_connection/", {"sqlalchemy_uri": address, "extra": json.dumps(extra)})
tables = call("GET", f"/database/{database}/tables/?q=(schema_name:public,force:!t)")["result"]
datasets = {
    name: call("POST", "/dataset/", {"database": database, "schema": "public", "table_name": name})[
        "id"
    ]
    for name in ("people", "visits")
}
columns = call("GET", f"/dataset/{datasets['people']}")["result"]["columns"]
assert "age" in [column["column_name"] for column in columns]


def count(label):
    return {"label": label, "expressionType": "SQL", "sqlExpression": "COUNT(*)"}


def mean(column):
    return {
        "label": f"mean of {column}",
        "expressionType": "SIMPLE",
        "aggregate": "AVG",
        "column": {"column_name": column},
    }


own = TOLD["own"]
younger = {"col": "age", "op": "<", "val": own}
CHARTS = [
    ("people", {"columns": ["sex"], "metrics": [count("n")], "filters": [younger]}),
    ("people", {"columns": ["smoker"], "metrics": [count("n")], "filters": [younger]}),
    ("people", {"columns": ["sex", "smoker"], "metrics": [count("n")], "filters": [younger]}),
    ("people", {"columns": [], "metrics": [count("n")], "filters": [younger]}),
    ("people", {"columns": [], "metrics": [mean("income")], "filters": [younger]}),
    ("people", {"columns": ["sex"], "metrics": [mean("age")], "filters": [younger]}),
    (
        "people",
        {
            "columns": [],
            "metrics": [count("smokers")],
            "filters": [{"col": "smoker", "op": "IS TRUE"}],
        },
    ),
    (
        "people",
        {
            "columns": [],
            "metrics": [count("n")],
            "filters": [{"col": "sex", "op": "IN", "val": ["F"]}],
        },
    ),
    ("visits", {"columns": [], "metrics": [count("visits")], "filters": []}),
    ("visits", {"columns": [], "metrics": [mean("cost")], "filters": []}),
]
dashboard = call("POST", "/dashboard/", {"dashboard_title": "town"})["id"]
contexts = []
for number, (table, query) in enumerate(CHARTS):
    source = {"id": datasets[table], "type": "table"}
    context = {
        "datasource": source,
        "queries": [{**query, "row_limit": 1000, "orderby": []}],
        "result_format": "json",
        "result_type": "full",
        "force": True,
    }
    call(
        "POST",
        "/chart/",
        {
            "slice_name": f"chart {number}",
            "viz_type": "table",
            "datasource_id": source["id"],
            "datasource_type": "table",
            "dashboards": [dashboard],
            "params": json.dumps({"viz_type": "table", "datasource": f"{source['id']}__table"}),
            "query_context": json.dumps(context),
        },
    )
    contexts.append(context)
charts = call("GET", f"/dashboard/{dashboard}/charts")["result"]
assert len(charts) == len(CHARTS)


def refresh():
    found = []
    for context in contexts:
        [result] = call("POST", "/chart/data", context)["result"]
        assert result["status"] == "success", result
        assert not result["is_cached"], result
        found.append([list(row.values()) for row in result["data"]])
    return found


refreshed = [refresh() for _ in range(3)]
estimate = call(
    "POST",
    "/sqllab/estimate/",
    {
        "database_id": database,
        "sql": "SELECT COUNT(*) FROM people",
        "schema": "public",
        "template_params": {},
    },
)
print()  # the migrations leave a line open
say(
    tables=sorted(table["value"] for table in tables),
    first=refreshed[0], second=refreshed[1], third=refreshed[2], estimate=json.dumps(estimate),
)  # fmt: skip
sys.stdout.flush()
os._exit(0)
