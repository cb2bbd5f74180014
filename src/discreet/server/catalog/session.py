"""The catalog's view of a session: who asks, with which settings, roles and activity."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from discreet.server.catalog.tables.builtin import PG_CATALOG, relations
from discreet.server.catalog.tables.contents import DATABASE_OID, USER_OID, to_arrow
from discreet.server.catalog.tables.fixed import CURATOR_OID, Row
from discreet.server.settings import SETTINGS, VERSION, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSession:
    """One session that asks the catalog. `settings` have every name that can be shown, in small
    letters.
    """

    user: str
    database: str
    settings: Mapping[str, str] = field(default_factory=lambda: Settings({}))
    pid: int = 0
    # what the session of this user with this number runs
    cancel: Callable[[int], bool] = lambda _: False
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def literals(self) -> dict[str, str]:
        """Return constants of SQL that stand for what functions of the session give."""
        return {
            "user": _text(self.user),
            "database": _text(self.database),
            "version": _text(f"PostgreSQL {VERSION} (discreet)"),
            "backend": str(int(self.pid)),
            "started": _moment(self.started),
            "moment": _moment(datetime.now(UTC)),
        }

    def relation(self, name: str) -> pa.Table:
        """Return one of the relations that depend on who asks."""
        if name == "settings_now":
            return to_arrow(relations()[PG_CATALOG, "pg_settings"], self._settings()).select(
                ["name", "setting"]
            )
        rows = {
            "pg_settings": self._settings(),
            "pg_roles": self._roles(),
            "pg_user": [
                {
                    "usename": row["rolname"],
                    "usesysid": row["oid"],
                    "usecreatedb": False,
                    "usesuper": False,
                }
                | {"userepl": False, "usebypassrls": False, "passwd": "********"}
                for row in self._roles()
                if row["rolcanlogin"]
            ],
            "pg_stat_activity": [
                {
                    "datid": DATABASE_OID,
                    "datname": self.database,
                    "pid": self.pid,
                    "usesysid": USER_OID,
                }
                | {"usename": self.user, "application_name": self.settings["application_name"]}
                | {"state": "active", "backend_type": "client backend"}
            ],
            "pg_stat_ssl": [{"pid": self.pid, "ssl": self.settings["ssl"] == "on"}],
            "pg_stat_gssapi": [
                {
                    "pid": self.pid,
                    "gss_authenticated": False,
                    "encrypted": False,
                    "credentials_delegated": False,
                }
            ],
        }
        return to_arrow(relations()[PG_CATALOG, name], rows[name])

    def _settings(self) -> list[Row]:
        return [
            {"name": setting.name, "setting": _bare(self.settings[key]), "category": "Settings"}
            | {
                "context": "internal" if setting.fixed else "user",
                "vartype": "string",
                "source": "default",
            }
            | {"boot_val": setting.value, "reset_val": setting.value, "short_desc": setting.help}
            | {"pending_restart": False}
            for key, setting in sorted(SETTINGS.items())
        ]

    def _roles(self) -> list[Row]:
        """Return the owner of everything, and whoever asks: nobody learns who else may."""
        usual = {
            "rolsuper": False,
            "rolinherit": True,
            "rolcreaterole": False,
            "rolcreatedb": False,
        }
        usual |= {"rolreplication": False, "rolbypassrls": False}
        rows = [
            usual
            | {"rolname": "curator", "oid": CURATOR_OID, "rolcanlogin": self.user == "curator"}
        ]
        if self.user != "curator":
            rows.append(usual | {"rolname": self.user, "oid": USER_OID, "rolcanlogin": True})
        return [row | {"rolconnlimit": -1, "rolpassword": "********"} for row in rows]


def _bare(value: str) -> str:
    """Return a setting as pg_settings has it: the number alone where SHOW adds a unit."""
    found = re.fullmatch(r"(\d+)(ms|kB)", value)
    if found:
        return found[1]
    if value == "4MB":
        return "4096"
    return value


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _moment(value: datetime) -> str:
    return f"TIMESTAMP '{value.astimezone(UTC).replace(tzinfo=None)}'"
