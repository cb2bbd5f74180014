"""The command `user`: say who may log in to the server."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from discreet.cli.printing.formats import Format, ReportFormat, print_json
from discreet.cli.question import Policy
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.server.users import Role, User, UserFile

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The user. An analyst has the same name as in the policy."),
]


def register(app: typer.Typer) -> None:
    user = typer.Typer(name="user", help="Say who may log in to the server.", no_args_is_help=True)
    for command in (add, list_users, lock, unlock, remove, token):
        user.command(name="list" if command is list_users else None)(command)
    app.add_typer(user)


def add(
    policy: Policy,
    name: Name,
    role: Annotated[str, typer.Option(help="analyst, curator or auditor.")] = "analyst",
    stdin: Annotated[
        bool,
        typer.Option("--stdin", help="Read the password from the first line of standard input."),
    ] = False,
) -> None:
    """Add a user who may log in. Without --stdin, make a strong password and print it once."""
    from discreet.server.users import ROLES

    if role not in ROLES:
        raise UsageError(f"A role is one of {', '.join(ROLES)}, not {role}.")
    password = sys.stdin.readline().rstrip("\n") if stdin else None
    new_password = _users(policy).add(name, role=_role(role), password=password)
    note = "" if new_password is None else f" Password: {new_password}"
    print(f"{name} may log in, as {role}.{note}")


def _role(text: str) -> Role:
    from discreet.server.users import Role

    found: Role = next(role for role in get_args(Role) if role == text)
    return found


def list_users(policy: Policy, format: ReportFormat = Format.table) -> None:
    """Show users with their roles and tokens."""
    users = _users(policy).read().users.values()
    if format is Format.json:
        print_json({"users": [_as_json(user) for user in users]})
        return
    for user in users:
        locked = "  locked" if user.locked else ""
        print(f"{user.name}  {user.role}{locked}")
        for token in user.tokens:
            end = "without end" if token.expires is None else f"until {_day(token.expires)}"
            print(f"    token {token.id}  made {_day(token.made)}, {end}")
    if not users:
        print("Nobody may log in. discreet user add POLICY NAME adds somebody.")


def _as_json(user: User) -> dict[str, object]:
    tokens = [
        {
            "id": token.id,
            "made": _day(token.made),
            "expires": None if token.expires is None else _day(token.expires),
        }
        for token in user.tokens
    ]
    return {"name": user.name, "role": user.role, "locked": user.locked, "tokens": tokens}


def lock(policy: Policy, name: Name) -> None:
    """Lock a user out from now on, also in open connections. Password and tokens are kept."""
    _users(policy).lock(name)
    print(f"{name} is locked out.")


def unlock(policy: Policy, name: Name) -> None:
    """Let a locked user in again."""
    _users(policy).lock(name, locked=False)
    print(f"{name} may log in again.")


def remove(policy: Policy, name: Name) -> None:
    """Remove a user with password and tokens. What the user spent stays spent."""
    _users(policy).remove(name)
    print(f"{name} is removed.")


def token(
    policy: Policy,
    name: Name,
    days: Annotated[
        int | None,
        typer.Option(help="How many days the token is valid; by default for ever."),
    ] = None,
    revoke: Annotated[
        str | None, typer.Option(metavar="ID", help="Instead of making a token, revoke this one.")
    ] = None,
) -> None:
    """Make a token for a program that asks over HTTP, and print it once."""
    users = _users(policy)
    if revoke is not None:
        users.remove_token(name, revoke)
        print(f"The token {revoke} of {name} is taken back.")
        return
    print(users.add_token(name, days=days))


def _users(policy: str) -> UserFile:
    from discreet.policy.policy import Policy as PolicyValue
    from discreet.server.users import UserFile

    return UserFile(PolicyValue.read(policy))


def _day(seconds: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
