"""`user`: who may log in at the server's doors."""

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
    typer.Argument(metavar="NAME", help="The user; an analyst has the name that the policy gives."),
]


def register(app: typer.Typer) -> None:
    user = typer.Typer(
        name="user", help="Say who may log in at the server's doors.", no_args_is_help=True
    )
    for command in (add, list_users, lock, unlock, remove, token):
        user.command(name="list" if command is list_users else None)(command)
    app.add_typer(user)


def add(
    policy: Policy,
    name: Name,
    role: Annotated[str, typer.Option(help="analyst, curator or auditor.")] = "analyst",
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Read the password from the first line of stdin.")
    ] = False,
) -> None:
    """Let somebody in. Without --stdin a strong password is made and printed once."""
    from discreet.server.users import ROLES

    if role not in ROLES:
        raise UsageError(f"A role is one of {', '.join(ROLES)}, not {role}.")
    password = sys.stdin.readline().rstrip("\n") if stdin else None
    made = _users(policy).add(name, role=_role(role), password=password)
    print(
        f"{name} may log in, as {role}."
        if made is None
        else f"{name} may log in, as {role}. Password: {made}"
    )


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
        print(f"{user.name}  {user.role}{'  locked' if user.locked else ''}")
        for each in user.tokens:
            end = "without end" if each.expires is None else f"until {_day(each.expires)}"
            print(f"    token {each.id}  made {_day(each.made)}, {end}")
    if not users:
        print("Nobody may log in. discreet user add POLICY NAME adds somebody.")


def _as_json(user: User) -> dict[str, object]:
    tokens = [
        {
            "id": each.id,
            "made": _day(each.made),
            "expires": None if each.expires is None else _day(each.expires),
        }
        for each in user.tokens
    ]
    return {"name": user.name, "role": user.role, "locked": user.locked, "tokens": tokens}


def lock(policy: Policy, name: Name) -> None:
    """Refuse a user from now on, also in open connections; keeps password and tokens."""
    _users(policy).lock(name)
    print(f"{name} is locked out.")


def unlock(policy: Policy, name: Name) -> None:
    """Let a locked user in again."""
    _users(policy).lock(name, locked=False)
    print(f"{name} may log in again.")


def remove(policy: Policy, name: Name) -> None:
    """Refuse a user from now on, and forget password and tokens. What was spent stays spent."""
    _users(policy).remove(name)
    print(f"{name} is removed.")


def token(
    policy: Policy,
    name: Name,
    days: Annotated[
        int | None,
        typer.Option(help="How many days the token is good for; by default it has no end."),
    ] = None,
    revoke: Annotated[
        str | None, typer.Option(metavar="ID", help="Instead: take a token back.")
    ] = None,
) -> None:
    """Make a token for programs that ask over HTTP, and print it once."""
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
