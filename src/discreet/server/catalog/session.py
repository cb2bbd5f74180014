"""Who asks the catalog, and what depends on that: settings, roles, activity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from discreet.server.catalog.builtin import PG_CATALOG, relations
from discreet.server.catalog.contents import CURATOR_OID, DATABASE_OID, USER_OID, Row, to_arrow

VERSION = "15.0"
# What clients of Postgres ask for; a session's own settings stand before them.
SETTINGS: Mapping[str, str] = {
    "application_name": "",
    "autovacuum_analyze_scale_factor": "0.1",
    "autovacuum_analyze_threshold": "50",
    "autovacuum_freeze_max_age": "200000000",
    "autovacuum_vacuum_cost_delay": "2",
    "autovacuum_vacuum_cost_limit": "-1",
    "autovacuum_vacuum_scale_factor": "0.2",
    "autovacuum_vacuum_threshold": "50",
    "block_size": "8192",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "data_checksums": "off",
    "datestyle": "ISO, MDY",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "default_transaction_deferrable": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "on",
    "enable_seqscan": "on",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "off",
    "jit": "off",
    "lc_collate": "C.UTF-8",
    "lc_ctype": "C.UTF-8",
    "lc_messages": "C.UTF-8",
    "lc_monetary": "C.UTF-8",
    "lc_numeric": "C.UTF-8",
    "lc_time": "C.UTF-8",
    "lock_timeout": "0",
    "max_connections": "100",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "password_encryption": "scram-sha-256",
    "row_security": "on",
    "search_path": '"$user", public',
    "server_encoding": "UTF8",
    "server_version": VERSION,
    "server_version_num": "150000",
    "session_authorization": "",
    "ssl": "off",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "synchronize_seqscans": "on",
    "timezone": "UTC",
    "transaction_deferrable": "off",
    "transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "vacuum_freeze_min_age": "50000000",
    "vacuum_freeze_table_age": "150000000",
    "wal_level": "replica",
    "work_mem": "4096",
}
_SPELLED = {"datestyle": "DateStyle", "intervalstyle": "IntervalStyle", "timezone": "TimeZone"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A connection as the catalog sees it. `settings` have names in lower case."""

    user: str
    database: str
    settings: Mapping[str, str] = field(default_factory=dict)
    pid: int = 0
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def literals(self) -> dict[str, str]:
        """Constants of SQL that stand for what functions of the session give."""
        return {
            "user": _text(self.user),
            "database": _text(self.database),
            "version": _text(f"PostgreSQL {VERSION} (discreet)"),
            "backend": str(int(self.pid)),
            "started": _moment(self.started),
            "moment": _moment(datetime.now(UTC)),
        }

    def relation(self, name: str) -> pa.Table:
        """One of the relations that depend on who asks."""
        if name == "settings_now":
            return to_arrow(relations()[PG_CATALOG, "pg_settings"], self._settings()).select(["name", "setting"])
        rows = {
            "pg_settings": self._settings(),
            "pg_roles": self._roles(),
            "pg_user": [
                {"usename": row["rolname"], "usesysid": row["oid"], "usecreatedb": False, "usesuper": False}
                | {"userepl": False, "usebypassrls": False, "passwd": "********"}
                for row in self._roles()
                if row["rolcanlogin"]
            ],
            "pg_stat_activity": [
                {"datid": DATABASE_OID, "datname": self.database, "pid": self.pid, "usesysid": USER_OID}
                | {"usename": self.user, "application_name": self.settings.get("application_name", "")}
                | {"state": "active", "backend_type": "client backend"}
            ],
            "pg_stat_ssl": [{"pid": self.pid, "ssl": self.settings.get("ssl") == "on"}],
            "pg_stat_gssapi": [
                {"pid": self.pid, "gss_authenticated": False, "encrypted": False, "credentials_delegated": False}
            ],
        }
        return to_arrow(relations()[PG_CATALOG, name], rows[name])

    def _settings(self) -> list[Row]:
        found = {**SETTINGS, **{name.lower(): value for name, value in self.settings.items()}}
        return [
            {"name": _SPELLED.get(name, name), "setting": value, "category": "Settings", "context": "user"}
            | {"vartype": "string", "source": "default", "boot_val": value, "reset_val": value}
            | {"pending_restart": False, "short_desc": ""}
            for name, value in sorted(found.items())
        ]

    def _roles(self) -> list[Row]:
        """The owner of everything, and whoever asks: nobody learns who else may."""
        usual = {"rolsuper": False, "rolinherit": True, "rolcreaterole": False, "rolcreatedb": False}
        usual |= {"rolreplication": False, "rolbypassrls": False}
        rows = [usual | {"rolname": "curator", "oid": CURATOR_OID, "rolcanlogin": self.user == "curator"}]
        if self.user != "curator":
            rows.append(usual | {"rolname": self.user, "oid": USER_OID, "rolcanlogin": True})
        return [row | {"rolconnlimit": -1, "rolpassword": "********"} for row in rows]


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _moment(value: datetime) -> str:
    return f"TIMESTAMP '{value.astimezone(UTC).replace(tzinfo=None)}'"
