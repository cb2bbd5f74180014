"""Run statements that are no questions: settings, transactions, cursors and prepared statements.

Nothing here asks the curator. So everything runs at once, on the connection's own thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from discreet.errors import UsageError
from discreet.server.pgwire.faults import Fault, Notice
from discreet.server.pgwire.lexer import Statement, Token
from discreet.server.pgwire.messages import ResultField
from discreet.server.pgwire.parameters import Parameter
from discreet.server.pgwire.question import Result
from discreet.server.settings import SETTINGS, ReadOnly, Settings, Unknown

MOST_KEPT = 1_000  # prepared statements, portals and savepoints of one session, each
# bytes of all prepared statements of one session, and of all statements and values of its cursors
MOST_GIVEN = 32 << 20
_TOKEN = 128  # bytes of memory that a token of a statement takes


@dataclass(slots=True, kw_only=True)
class Prepared:
    """A prepared statement."""

    statement: Statement | None  # None if the text was empty
    parameters: tuple[Parameter, ...]
    schema: pa.Schema | None = None  # the columns of its result, once it is described
    described: bool = False


@dataclass(slots=True, kw_only=True)
class Portal:
    """A statement with its values. It is run once, and its result is read in pieces."""

    prepared: Prepared
    literals: tuple[str, ...] = ()
    values: tuple[object, ...] = ()
    formats: tuple[int, ...] = ()
    result: Result | None = None
    fields: tuple[ResultField, ...] = ()
    position: int = 0  # the number of rows that were read
    hold: bool = False


@dataclass(slots=True, kw_only=True)
class Savepoint:
    name: str
    settings: dict[str, str]


@dataclass(slots=True, kw_only=True)
class State:
    """What one session remembers."""

    settings: Settings
    status: str = "I"  # idle, in a transaction (T), or in one that failed (E)
    charged: bool = False  # True if the current transaction was charged
    savepoints: list[Savepoint] = field(default_factory=list)
    local: dict[str, str] | None = None  # settings that return at the end of the transaction
    statements: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)

    def keep_portal(self, name: str, portal: Portal) -> None:
        if len(self.portals) >= MOST_KEPT and name not in self.portals:
            raise Fault("54000", f"A session has at most {MOST_KEPT} cursors.", hint="CLOSE some.")
        kept = [each for key, each in self.portals.items() if key != name] + [portal]
        values = sum(len(literal) for each in kept for literal in each.literals)
        if values + _size(each.prepared for each in kept) > MOST_GIVEN:
            told = "The statements and values of this session's cursors are too long."
            raise Fault("54000", told, hint="CLOSE some.")
        self.portals[name] = portal

    def keep_statement(self, name: str, prepared: Prepared) -> None:
        if _size([*self.statements.values(), prepared]) > MOST_GIVEN:
            raise Fault(
                "54000",
                "The prepared statements of this session are too long.",
                hint="DEALLOCATE some.",
            )
        if len(self.statements) >= MOST_KEPT and name not in self.statements:
            raise Fault(
                "54000",
                f"A session has at most {MOST_KEPT} prepared statements.",
                hint="DEALLOCATE some.",
            )
        self.statements[name] = prepared

    @property
    def held(self) -> int:
        """Return how many bytes the results of all cursors take."""
        results = (portal.result for portal in self.portals.values())
        return sum(
            each.table.nbytes for each in results if each is not None and each.table is not None
        )

    def drop_portals(self) -> None:
        """Drop the cursors that end with a transaction."""
        self.portals = {name: portal for name, portal in self.portals.items() if portal.hold}

    def fail(self) -> None:
        if self.status == "T":
            self.status = "E"

    def require_sound(self, verb: str) -> None:
        if self.status == "E" and verb not in ("ROLLBACK", "ABORT", "COMMIT", "END"):
            raise Fault(
                "25P02",
                "The transaction has failed: commands are ignored until it ends.",
                hint="ROLLBACK ends it. What was charged stays charged.",
            )


def _size(kept: Iterable[Prepared]) -> int:
    """Return about how many bytes statements take. A statement that several cursors share counts
    once.
    """
    statements = {id(each): each.statement for each in kept if each.statement is not None}
    return sum(len(each.text) + _TOKEN * len(each.tokens) for each in statements.values())


Command = Callable[[State, Statement], Result]


def run(state: State, statement: Statement) -> Result | None:
    """Run a command; return None if the statement is no command."""
    command = _COMMANDS.get(statement.verb)
    return None if command is None else command(state, statement)


# --- settings -------------------------------------------------------------------------------------


def _set(state: State, statement: Statement) -> Result:
    tokens = list(statement.tokens[1:])
    local = bool(tokens) and tokens[0].upper == "LOCAL"
    if (
        tokens
        and tokens[0].upper in ("LOCAL", "SESSION")
        and len(tokens) > 1
        and tokens[1].upper != "AUTHORIZATION"
    ):
        tokens = tokens[1:]
    words = [token.upper for token in tokens]
    if words[:1] == ["TRANSACTION"] or words[:2] in (
        ["CHARACTERISTICS", "AS"],
        ["SESSION", "AUTHORIZATION"],
    ):
        return Result(tag="SET")
    if words[:2] == ["TIME", "ZONE"]:
        name, value = "timezone", _zone(statement, tokens[2:])
    elif words[:1] == ["NAMES"]:
        name, value = "client_encoding", _join(tokens[1:])
    elif words[:1] == ["ROLE"]:
        return Result(tag="SET")
    else:
        name, value = _assignment(tokens)
    before = state.settings.saved()
    _change(lambda: _assign(state.settings, name, value))
    if local and state.status == "T":
        state.local = before if state.local is None else state.local
    return Result(tag="SET")


def _assign(settings: Settings, name: str, value: str | None) -> None:
    if value is None:
        del settings[name]
    else:
        settings[name] = value


def _change(change: Callable[[], None]) -> None:
    try:
        change()
    except Unknown as error:
        raise Fault("42704", str(error)) from None
    except ReadOnly as error:
        raise Fault("55P02", str(error)) from None
    except UsageError as error:
        raise Fault("22023", str(error)) from None


def _assignment(tokens: Sequence[Token]) -> tuple[str, str | None]:
    """Read `name = value` or `name TO value`. The value is None for DEFAULT."""
    place = next((index for index, token in enumerate(tokens) if token.upper in ("=", "TO")), None)
    if not place or place == len(tokens) - 1:
        raise Fault("42601", "Write SET name = value.")
    name = "".join(token.name for token in tokens[:place])
    values = tokens[place + 1 :]
    return name, None if [token.upper for token in values] == ["DEFAULT"] else _join(values)


def _join(tokens: Sequence[Token]) -> str:
    """Return a list of values as one text: public, pg_catalog; -5; 1e-3."""
    parts = [
        "" if token.text == "," else token.text if token.kind == "quoted" else token.name
        for token in tokens
    ]
    listed = any(token.text == "," for token in tokens)
    if not listed:
        return "".join(token.name for token in tokens)
    return ", ".join(part for part in parts if part)


def _zone(statement: Statement, tokens: Sequence[Token]) -> str | None:
    words = [token.upper for token in tokens]
    # SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE
    if words[:1] == ["INTERVAL"] and len(tokens) > 1:
        return tokens[1].name
    if words in (["LOCAL"], ["DEFAULT"]):
        return None
    return _join(tokens)


def _reset(state: State, statement: Statement) -> Result:
    words = [token.upper for token in statement.tokens[1:]]
    name = "".join(token.name for token in statement.tokens[1:])
    if words == ["ALL"]:
        state.settings.reset()
    elif words in (["ROLE"], ["SESSION", "AUTHORIZATION"]):
        pass
    else:
        named = {"timezone": "timezone", "timezoneall": "timezone"}.get(name, name)
        _change(lambda: state.settings.__delitem__(named))
    return Result(tag="RESET")


def _show(state: State, statement: Statement) -> Result:
    words = [token.upper for token in statement.tokens[1:]]
    if words == ["ALL"]:
        shown = state.settings.shown()
        columns = [pa.array([row[index] for row in shown], pa.string()) for index in range(3)]
        return Result(tag="SHOW", table=pa.table(columns, ["name", "setting", "description"]))
    name = setting_name(statement)
    found: list[str] = []
    _change(lambda: found.append(state.settings[name]))
    return Result(tag="SHOW", table=show_value(name, found[0]))


def setting_name(statement: Statement) -> str:
    """Return the name of the setting that a SHOW statement asks for."""
    words = tuple(token.upper for token in statement.tokens[1:])
    spelled = {
        ("TIME", "ZONE"): "timezone",
        ("TRANSACTION", "ISOLATION", "LEVEL"): "transaction_isolation",
        ("SESSION", "AUTHORIZATION"): "session_authorization",
        ("NAMES",): "client_encoding",
    }
    return spelled.get(words) or "".join(token.name for token in statement.tokens[1:])


def show_value(name: str, value: str) -> pa.Table:
    setting = SETTINGS.get(name.lower())
    return pa.table(
        [pa.array([value], pa.string())], [name.lower() if setting is None else setting.name]
    )


def _discard(state: State, statement: Statement) -> Result:
    words = [token.upper for token in statement.tokens[1:]]
    if words == ["ALL"]:
        if state.status != "I":
            raise Fault("25001", "DISCARD ALL cannot stand in a transaction.")
        state.settings.reset()
        state.portals.clear()
        state.statements.clear()
    return Result(tag=f"DISCARD {' '.join(words)}")


# --- transactions ---------------------------------------------------------------------------------


def _begin(state: State, statement: Statement) -> Result:
    if state.status == "T":
        there = Notice(message="There is already a transaction.", code="25001", severity="WARNING")
        return Result(tag="BEGIN", notices=(there,))
    state.status, state.charged, state.local = "T", False, None
    state.savepoints = [Savepoint(name="", settings=state.settings.saved())]
    return Result(tag="START TRANSACTION" if statement.verb == "START" else "BEGIN")


def _commit(state: State, _statement: Statement) -> Result:
    if state.status == "E":
        return _end(state, keep=False)
    if state.status == "I":
        none = Notice(message="There is no transaction.", code="25P01", severity="WARNING")
        return Result(tag="COMMIT", notices=(none,))
    return _end(state, keep=True)


def _rollback(state: State, statement: Statement) -> Result:
    words = [token.upper for token in statement.tokens]
    if "TO" in words:
        return _rollback_to(state, statement.tokens[-1].name)
    if state.status == "I":
        none = Notice(message="There is no transaction.", code="25P01", severity="WARNING")
        return Result(tag="ROLLBACK", notices=(none,))
    return _end(state, keep=False)


def _stays(state: State) -> tuple[Notice, ...]:
    stays = "What was charged stays charged after ROLLBACK, and its answers stay free to ask again."
    return (Notice(message=stays),) if state.charged else ()


def _end(state: State, *, keep: bool) -> Result:
    notices = () if keep else _stays(state)
    if not keep:
        state.settings.restore(state.savepoints[0].settings)
    elif state.local is not None:
        state.settings.restore(state.local)
    state.status, state.charged, state.local, state.savepoints = "I", False, None, []
    state.drop_portals()
    return Result(tag="COMMIT" if keep else "ROLLBACK", notices=notices)


def _savepoint(state: State, statement: Statement) -> Result:
    _require_transaction(state, "SAVEPOINT")
    if len(state.savepoints) > MOST_KEPT:
        raise Fault("54000", f"A transaction has at most {MOST_KEPT} savepoints.")
    state.savepoints.append(Savepoint(name=_only_name(statement), settings=state.settings.saved()))
    return Result(tag="SAVEPOINT")


def _release(state: State, statement: Statement) -> Result:
    _require_transaction(state, "RELEASE")
    state.savepoints = state.savepoints[: _find(state, statement.tokens[-1].name)]
    return Result(tag="RELEASE")


def _rollback_to(state: State, name: str) -> Result:
    _require_transaction(state, "ROLLBACK TO")
    place = _find(state, name)
    state.savepoints = state.savepoints[: place + 1]
    state.settings.restore(state.savepoints[place].settings)
    state.status = "T"
    return Result(tag="ROLLBACK", notices=_stays(state))


def _find(state: State, name: str) -> int:
    places = [place for place, each in enumerate(state.savepoints) if place and each.name == name]
    if not places:
        raise Fault("3B001", f"There is no savepoint {name[:63]}.")
    return places[-1]


def _require_transaction(state: State, what: str) -> None:
    if state.status == "I":
        raise Fault("25P01", f"{what} can only stand in a transaction.", hint="Write BEGIN first.")


# --- names ----------------------------------------------------------------------------------------


def _close(state: State, statement: Statement) -> Result:
    if [token.upper for token in statement.tokens[1:]] == ["ALL"]:
        state.portals.clear()
        return Result(tag="CLOSE CURSOR ALL")
    name = _only_name(statement)
    if state.portals.pop(name, None) is None:
        raise Fault("34000", f"There is no cursor {name[:63]}.")
    return Result(tag="CLOSE CURSOR")


def _deallocate(state: State, statement: Statement) -> Result:
    names = [token for token in statement.tokens[1:] if token.upper != "PREPARE"]
    if [token.upper for token in names] == ["ALL"]:
        state.statements.clear()
        return Result(tag="DEALLOCATE ALL")
    if len(names) != 1 or state.statements.pop(names[0].name, None) is None:
        raise Fault("26000", "There is no such prepared statement.")
    return Result(tag="DEALLOCATE")


def _only_name(statement: Statement) -> str:
    if len(statement.tokens) != 2 or statement.tokens[1].kind not in ("word", "quoted"):
        raise Fault("42601", f"Write {statement.verb} and one name.")
    return statement.tokens[1].name


def _listen(_state: State, statement: Statement) -> Result:
    """Accept LISTEN and do nothing: there are no notifications, as on a server without any."""
    return Result(tag=statement.verb)


_COMMANDS: dict[str, Command] = {
    "SET": _set,
    "RESET": _reset,
    "SHOW": _show,
    "DISCARD": _discard,
    "BEGIN": _begin,
    "START": _begin,
    "COMMIT": _commit,
    "END": _commit,
    "ROLLBACK": _rollback,
    "ABORT": _rollback,
    "SAVEPOINT": _savepoint,
    "RELEASE": _release,
    "CLOSE": _close,
    "DEALLOCATE": _deallocate,
    "LISTEN": _listen,
    "UNLISTEN": _listen,
}


# --- cursors --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorDeclaration:
    """DECLARE name ... CURSOR [WITH HOLD] FOR question."""

    name: str
    hold: bool
    source: Statement


def parse_declare(statement: Statement) -> CursorDeclaration:
    words = [token.upper for token in statement.tokens]
    if "FOR" not in words or "CURSOR" not in words or len(words) < 2:
        raise Fault("42601", "Write DECLARE name CURSOR FOR SELECT ...")
    start = words.index("FOR")
    options = words[2:start]
    holds = any(options[index : index + 2] == ["WITH", "HOLD"] for index in range(len(options)))
    return CursorDeclaration(
        name=statement.tokens[1].name, hold=holds, source=statement.rest(start + 1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """A movement of a cursor: by `count` rows, or to an absolute `place`."""

    name: str
    count: int | None  # None stands for all rows that are left
    place: int | None = None  # this many rows are read then, and the last of them is returned
    move: bool = False


def parse_fetch(statement: Statement) -> Fetch:
    """Read FETCH [direction] [FROM | IN] name."""
    tokens = [token for token in statement.tokens[1:] if token.upper not in ("FROM", "IN")]
    if not tokens:
        raise Fault("42601", "Write FETCH count FROM name.")
    *direction, name = tokens
    words = [token.upper or token.text for token in direction]
    move = statement.verb == "MOVE"
    sign = -1 if words[:1] and words[0] in ("BACKWARD", "PRIOR") else 1
    if words[:1] and words[0] in ("FIRST", "LAST", "ABSOLUTE"):
        place = {"FIRST": 1, "LAST": -1}.get(words[0])
        return Fetch(
            name=name.name, count=1, place=_whole(words[1:]) if place is None else place, move=move
        )
    rest = [
        word for word in words if word not in ("FORWARD", "BACKWARD", "NEXT", "PRIOR", "RELATIVE")
    ]
    count = None if rest == ["ALL"] else sign * _whole(rest) if rest else sign
    if rest == ["ALL"] and sign < 0:
        return Fetch(name=name.name, count=-(2**31), move=move)
    return Fetch(name=name.name, count=count, move=move)


def _whole(words: Sequence[str]) -> int:
    text = "".join(words)
    if not text.removeprefix("-").isascii() or not text.removeprefix("-").isdigit():
        raise Fault("42601", "FETCH takes a whole number of rows.")
    return max(-(2**31), min(2**31, int(text)))


def rows_of(fetch: Fetch, portal: Portal, total: int) -> list[int]:
    """Move the cursor, and return the numbers of the rows that FETCH returns. The cursor is before,
    on or after a row.
    """
    here = portal.position
    if fetch.place is not None:
        wanted = fetch.place if fetch.place >= 0 else total + 1 + fetch.place
        portal.position = max(0, min(total + 1, wanted))
        return [portal.position - 1] if 1 <= portal.position <= total else []
    count = total + 1 if fetch.count is None else fetch.count
    if count > 0:
        first = min(here, total) if here <= total else total
        found = list(range(first, min(total, first + count)))
        portal.position = min(total + 1, here + count) if len(found) < count else here + count
        return found
    if count < 0:
        start = min(here - 1, total)
        found = list(range(start - 1, max(-1, start - 1 + count), -1))
        portal.position = max(0, start + 1 + count) if len(found) < -count else start + 1 + count
        return found
    return [here - 1] if 1 <= here <= total else []
