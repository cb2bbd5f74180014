"""The settings of a session: the price of its questions, and the many settings that Postgres
clients expect.

discreet.epsilon    the ε that an answer may cost
discreet.margin     instead of it: the 95 % margin that the session accepts
discreet.assuming   how many rows to assume, for margins of means and quantiles
discreet.margins    where margins are shown: notice, columns or none
discreet.rows       what a SELECT of rows gets: a refusal (refuse), or no rows and a notice (none)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass

from discreet.budget import amount
from discreet.errors import UsageError

VERSION = "15.0"
_MOST_LETTERS = 4_096


class Unknown(UsageError):
    """There is no such setting."""


class ReadOnly(UsageError):
    """The setting can be read, but not changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting."""

    name: str  # as SHOW ALL prints it
    value: str  # the default
    choices: tuple[str, ...] = ()  # the values that it may have; any, if there are none
    fixed: bool = False  # it cannot be changed
    reported: bool = False  # the protocol tells clients when it changes
    help: str = ""


_ON_OFF = ("on", "off", "true", "false", "yes", "no", "0", "1")
_LEVELS = ("serializable", "repeatable read", "read committed", "read uncommitted")
_MESSAGES = (
    "debug5",
    "debug4",
    "debug3",
    "debug2",
    "debug1",
    "debug",
    "log",
    "info",
    "notice",
    "warning",
    "error",
)

_ALL = (
    Setting(name="discreet.epsilon", value="", help="The ε that an answer may cost."),
    Setting(
        name="discreet.margin",
        value="",
        help="Instead of epsilon: the 95 % margin that you accept.",
    ),
    Setting(
        name="discreet.assuming",
        value="",
        help="How many rows to assume, for margins of means and quantiles.",
    ),
    Setting(
        name="discreet.margins",
        value="notice",
        choices=("notice", "columns", "none"),
        help="Where margins are shown: in a notice, in columns beside the numbers, or not at all.",
    ),
    Setting(
        name="discreet.rows",
        value="refuse",
        choices=("refuse", "none"),
        help="What a SELECT of single rows gets: a refusal, or no rows and a notice.",
    ),
    Setting(name="discreet.budget", value="", fixed=True, help="What is left to you."),
    Setting(
        name="discreet.metrics",
        value="",
        fixed=True,
        help="Counts of the server, for curators and auditors.",
    ),
    Setting(name="application_name", value="", reported=True),
    Setting(name="array_nulls", value="on", choices=_ON_OFF),
    Setting(name="autovacuum", value="off", fixed=True),
    Setting(name="autovacuum_analyze_scale_factor", value="0.1", fixed=True),
    Setting(name="autovacuum_analyze_threshold", value="50", fixed=True),
    Setting(name="autovacuum_freeze_max_age", value="200000000", fixed=True),
    Setting(name="autovacuum_vacuum_cost_delay", value="2ms", fixed=True),
    Setting(name="autovacuum_vacuum_cost_limit", value="-1", fixed=True),
    Setting(name="autovacuum_vacuum_scale_factor", value="0.2", fixed=True),
    Setting(name="autovacuum_vacuum_threshold", value="50", fixed=True),
    Setting(name="backslash_quote", value="safe_encoding"),
    Setting(name="block_size", value="8192", fixed=True),
    Setting(name="bytea_output", value="hex", choices=("hex",)),
    Setting(name="check_function_bodies", value="on", choices=_ON_OFF),
    Setting(name="client_encoding", value="UTF8", reported=True),
    Setting(name="client_min_messages", value="notice", choices=_MESSAGES),
    Setting(name="DateStyle", value="ISO, MDY", reported=True),
    Setting(name="constraint_exclusion", value="partition"),
    Setting(name="cursor_tuple_fraction", value="0.1"),
    Setting(name="default_table_access_method", value="heap"),
    Setting(name="default_tablespace", value=""),
    Setting(name="default_transaction_deferrable", value="off", choices=_ON_OFF),
    Setting(name="default_transaction_isolation", value="read committed", choices=_LEVELS),
    Setting(name="default_transaction_read_only", value="on", choices=_ON_OFF, reported=True),
    Setting(name="extra_float_digits", value="1"),
    Setting(name="geqo", value="on", choices=_ON_OFF),
    Setting(name="idle_in_transaction_session_timeout", value="0"),
    Setting(name="in_hot_standby", value="off", fixed=True, reported=True),
    Setting(name="integer_datetimes", value="on", fixed=True, reported=True),
    Setting(name="IntervalStyle", value="postgres", choices=("postgres",), reported=True),
    Setting(name="is_superuser", value="off", fixed=True, reported=True),
    Setting(name="jit", value="off", choices=_ON_OFF),
    Setting(name="lc_collate", value="C", fixed=True),
    Setting(name="lc_ctype", value="C", fixed=True),
    Setting(name="lc_messages", value="C"),
    Setting(name="lc_monetary", value="C"),
    Setting(name="lc_numeric", value="C"),
    Setting(name="lc_time", value="C"),
    Setting(name="listen_addresses", value="localhost", fixed=True),
    Setting(name="lock_timeout", value="0"),
    Setting(name="max_connections", value="400", fixed=True),
    Setting(name="max_identifier_length", value="63", fixed=True),
    Setting(name="max_index_keys", value="32", fixed=True),
    Setting(name="row_security", value="on", choices=_ON_OFF),
    Setting(name="scram_iterations", value="10000", fixed=True, reported=True),
    Setting(name="search_path", value='"$user", public'),
    Setting(name="server_encoding", value="UTF8", fixed=True, reported=True),
    Setting(name="server_version", value=VERSION, fixed=True, reported=True),
    Setting(name="server_version_num", value="150000", fixed=True),
    Setting(name="session_authorization", value="", fixed=True, reported=True),
    Setting(name="role", value="none"),
    Setting(name="session_replication_role", value="origin"),
    Setting(name="ssl", value="off", fixed=True),
    Setting(
        name="standard_conforming_strings",
        value="on",
        choices=("on", "true", "yes", "1"),
        reported=True,
    ),
    Setting(name="statement_timeout", value="0"),
    Setting(name="synchronize_seqscans", value="on", choices=_ON_OFF),
    Setting(
        name="synchronous_commit",
        value="on",
        choices=(*_ON_OFF, "local", "remote_write", "remote_apply"),
    ),
    Setting(name="TimeZone", value="UTC", reported=True),
    Setting(name="transaction_isolation", value="read committed", choices=_LEVELS),
    Setting(name="transaction_read_only", value="on", choices=_ON_OFF),
    Setting(name="transaction_deferrable", value="off", choices=_ON_OFF),
    Setting(name="vacuum_cost_delay", value="0"),
    Setting(name="vacuum_freeze_min_age", value="50000000"),
    Setting(name="vacuum_freeze_table_age", value="150000000"),
    Setting(name="wal_level", value="replica", fixed=True),
    Setting(name="work_mem", value="4MB"),
    Setting(name="xmloption", value="content", choices=("content", "document")),
)
SETTINGS: Mapping[str, Setting] = {setting.name.lower(): setting for setting in _ALL}
# Setting one of these clears the other.
_INSTEAD = {"discreet.epsilon": "discreet.margin", "discreet.margin": "discreet.epsilon"}
_SYNONYMS = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}
_UTF8 = frozenset(("utf8", "utf-8", "unicode", "sql_ascii", "auto"))
_UTC = frozenset(
    (
        "utc",
        "gmt",
        "etc/utc",
        "etc/gmt",
        "zulu",
        "universal",
        "z",
        "default",
        "local",
        "0",
        "+00:00",
    )
)


class Settings(MutableMapping[str, str]):
    """The settings of one session, by name. A setting that was not set has its default."""

    def __init__(self, defaults: Mapping[str, str]) -> None:
        """`defaults` are those of this user: the name, and the policy's ε per question."""
        self._defaults = {name: setting.value for name, setting in SETTINGS.items()}
        self._defaults.update(defaults)
        self._set: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        key = name.lower()
        if key in self._set:
            return self._set[key]
        if key not in self._defaults:
            raise Unknown(f"There is no setting {name[:80]}. SHOW ALL lists them.")
        return self._defaults[key]

    def __setitem__(self, name: str, value: str) -> None:
        key = name.lower()
        setting = SETTINGS.get(key)
        if setting is None:
            raise Unknown(f"There is no setting {name[:80]}. SHOW ALL lists them.")
        if setting.fixed:
            raise ReadOnly(f"{setting.name} cannot be changed.")
        self._set[key] = _check(setting, value)
        other = _INSTEAD.get(key)
        if other is not None and self._set[key]:
            self._set[other] = ""

    def __delitem__(self, name: str) -> None:
        """Return to the default."""
        if name.lower() not in self._defaults:
            raise Unknown(f"There is no setting {name[:80]}. SHOW ALL lists them.")
        self._set.pop(name.lower(), None)
        other = _INSTEAD.get(name.lower())
        if other is not None and not self._set.get(other):
            self._set.pop(other, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._defaults)

    def __len__(self) -> int:
        return len(self._defaults)

    def begin(self, name: str, value: str) -> None:
        """Set a default, to which RESET returns: for the settings of the startup message."""
        self[name] = value
        for key, held in self._set.items():
            self._defaults[key] = held
        self._set.clear()

    def reset(self) -> None:
        self._set.clear()

    def saved(self) -> dict[str, str]:
        return dict(self._set)

    def restore(self, saved: Mapping[str, str]) -> None:
        self._set = dict(saved)

    def shown(self) -> list[tuple[str, str, str]]:
        """Return name, value and help of all settings, ordered by name."""
        return [(SETTINGS[key].name, self[key], SETTINGS[key].help) for key in sorted(SETTINGS)]

    def price(self) -> dict[str, object] | None:
        """Return the arguments `epsilon` or `margin`, and `assuming`, of a question; None if no
        price is set.
        """
        epsilon = self["discreet.epsilon"]
        margin = self["discreet.margin"]
        assuming = self["discreet.assuming"]
        if not epsilon and not margin:
            return None
        price: dict[str, object] = {"epsilon": epsilon} if epsilon else {"margin": margin}
        if assuming:
            price["assuming"] = int(assuming)
        return price


def _check(setting: Setting, value: str) -> str:
    if len(value) > _MOST_LETTERS or "\0" in value:
        raise UsageError(f"{setting.name} has at most {_MOST_LETTERS} letters.")
    if setting.choices and value.lower() not in setting.choices:
        raise UsageError(
            f"{setting.name} is one of {', '.join(setting.choices)}, not {value[:80]}."
        )
    match setting.name:
        case "discreet.epsilon" | "discreet.margin" if value:
            amount(value, name=setting.name)
        case "discreet.assuming" if value and (
            not value.isascii() or not value.isdigit() or int(value) < 1
        ):
            raise UsageError("discreet.assuming is a number of rows.")
        case "client_encoding" if value.strip("'\"").lower() not in _UTF8:
            raise UsageError(f"Texts are in UTF8 here, not in {value[:80]}.")
        case "client_encoding":
            return "UTF8"
        case "TimeZone" if value.lower() not in _UTC:
            raise UsageError(f"Times are in UTC here, not in {value[:80]}.")
        case "TimeZone":
            return "UTC"
        case "DateStyle":
            return _date_style(value)
    if not setting.choices:
        return value
    return _SYNONYMS.get(value.lower(), value.lower())


def _date_style(value: str) -> str:
    words = [word.strip().lower() for word in value.split(",")]
    if not set(words) <= {"iso", "mdy", "dmy", "ymd", "us", "european", "default"}:
        raise UsageError(
            f"Dates are written as ISO has them, 2024-12-31, not as {value[:80]} has them."
        )
    order = next((word.upper() for word in words if word in ("mdy", "dmy", "ymd")), "MDY")
    return f"ISO, {order}"
