"""A curator's routes: the ledger, users, check, snapshot, the policy, bounds. Metrics also for
auditors.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from discreet import upkeep
from discreet.budget import Account
from discreet.display.formats import plain_value
from discreet.errors import PolicyError, Problem
from discreet.policy.addresses import hide_passwords, restore_passwords
from discreet.policy.policy import CURATOR, Policy
from discreet.server.http import shapes
from discreet.server.http.faults import Refusal
from discreet.server.http.jobs import Progress, begin_reply, jobs_of
from discreet.server.http.questions import desk_of, list_charges
from discreet.server.http.visitors import CuratorOnly, Overseer
from discreet.server.users import User, UserFile

# Where things are, on the server's machine and beyond. Privacy: whoever holds a curator's session
# must not choose the database that the next snapshot's rows are copied to.
FIXED = ("source", "engine", "ledger", "ledger_address", "store")

router = APIRouter()


# --- the ledger -----------------------------------------------------------------------------------


@router.get("/ledger", response_model=shapes.LedgerReply)
async def ledger(
    request: Request,
    visitor: CuratorOnly,
    analyst: Annotated[str | None, Query(max_length=200)] = None,
    search: Annotated[str | None, Query(max_length=200)] = None,
    first: Annotated[int, Query(ge=0, le=10**9)] = 0,
    most: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Return the charges, newest first, and where everybody stands. `search` is part of a
    question's text.
    """
    desk = desk_of(request)

    def work() -> dict[str, Any]:
        found = [*reversed(desk.curator.ledger(analyst=analyst))]
        if search is not None:
            found = [entry for entry in found if search.casefold() in entry.text.casefold()]
        accounts = desk.curator.spending()
        return {
            "entries": list_charges(desk.curator, found[first : first + most]),
            "total": len(found),
            "everybody": _account(accounts[None]),
            "analysts": {
                name: _account(account) for name, account in accounts.items() if name is not None
            },
        }

    return JSONResponse(await desk.work(visitor, work))


def _account(account: Account) -> dict[str, Any]:
    return {name: getattr(account, name).as_json() for name in ("limit", "spent", "left")}


@router.get("/ledger/{id}", response_model=dict[str, Any])
async def certificate(request: Request, visitor: CuratorOnly, id: str) -> Response:
    """Return everything that is needed to audit one answer."""
    desk = desk_of(request)
    return JSONResponse(await desk.work(visitor, lambda: desk.curator.certificate(id)))


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request, visitor: Overseer) -> Response:
    """Return counts, in the form that Prometheus reads."""
    door = desk_of(request).door
    door.metrics.gauge("waiting", door.queue.waiting)
    door.metrics.gauge("running", door.queue.running)
    return PlainTextResponse(door.metrics.text())


# --- users ----------------------------------------------------------------------------------------


def _users(request: Request) -> UserFile:
    return UserFile(desk_of(request).curator.policy)


def _user(user: User) -> dict[str, Any]:
    tokens = [{"id": each.id, "made": each.made, "expires": each.expires} for each in user.tokens]
    return {"name": user.name, "role": user.role, "locked": user.locked, "tokens": tokens}


@router.get("/users", response_model=shapes.UsersReply)
async def users(request: Request, visitor: CuratorOnly) -> Response:
    """Return who may log in, and the policy's analysts."""
    found = [_user(user) for user in _users(request).read().users.values()]
    return JSONResponse({"users": found, "analysts": [*desk_of(request).curator.policy.analysts]})


@router.post("/users", response_model=shapes.MadeReply, status_code=201)
async def add_user(request: Request, body: shapes.UserBody, visitor: CuratorOnly) -> Response:
    """Let somebody in; the password is made and told once."""
    desk = desk_of(request)
    file = _users(request)
    made = await desk.work(visitor, lambda: file.add(body.name, role=body.role))
    return JSONResponse({"name": body.name, "role": body.role, "password": made}, status_code=201)


@router.post("/users/{name:path}/lock", response_model=shapes.UserReply)
async def lock(request: Request, name: str, visitor: CuratorOnly) -> Response:
    """Refuse a user from the next request on."""
    return await _lock(request, visitor, name, locked=True)


@router.post("/users/{name:path}/unlock", response_model=shapes.UserReply)
async def unlock(request: Request, name: str, visitor: CuratorOnly) -> Response:
    """Let a user in again."""
    return await _lock(request, visitor, name, locked=False)


async def _lock(request: Request, visitor: CuratorOnly, name: str, *, locked: bool) -> Response:
    _require_other(visitor, name)
    desk = desk_of(request)
    file = _users(request)
    await desk.work(visitor, lambda: file.lock(name, locked=locked))
    return JSONResponse(_user(file.read().users[name]))


def _require_other(visitor: CuratorOnly, name: str) -> None:
    if name == visitor.user.name:
        hint = "Let another curator do it, or use discreet user on the server's machine."
        raise Refusal(400, "usage", "You would lock yourself out.", hint)


@router.post("/users/{name:path}/tokens", response_model=shapes.MadeReply, status_code=201)
async def add_token(
    request: Request, name: str, body: shapes.TokenBody, visitor: CuratorOnly
) -> Response:
    """Make a token for programs; it is told once."""
    desk = desk_of(request)
    file = _users(request)
    token = await desk.work(visitor, lambda: file.add_token(name, days=body.days))
    return JSONResponse({"name": name, "token": token}, status_code=201)


@router.delete("/users/{name:path}/tokens/{id}", status_code=204, response_class=Response)
async def remove_token(request: Request, name: str, id: str, visitor: CuratorOnly) -> Response:
    """Take a token back."""
    desk = desk_of(request)
    file = _users(request)
    await desk.work(visitor, lambda: file.remove_token(name, id))
    return Response(status_code=204)


@router.delete("/users/{name:path}", status_code=204, response_class=Response)
async def remove_user(request: Request, name: str, visitor: CuratorOnly) -> Response:
    """Remove a user; what was charged stays charged."""
    _require_other(visitor, name)
    desk = desk_of(request)
    file = _users(request)
    await desk.work(visitor, lambda: file.remove(name))
    return Response(status_code=204)


# --- the policy and its source --------------------------------------------------------------------


@router.post("/check", response_model=shapes.JobReply, status_code=202)
async def check(request: Request, visitor: CuratorOnly) -> Response:
    """Compare the policy with its source. Its result has the problems with their places, notes, and
    what to do next.
    """
    desk = desk_of(request)

    def work(progress: Progress) -> dict[str, Any]:
        found = upkeep.check(desk.curator.policy)
        groups = {title: list(notes) for title, notes in found.groups.items()}
        return {"problems": _problems(found.problems), "groups": groups, "next": found.next}

    return begin_reply(jobs_of(request).begin(visitor, "check", work))


@router.post("/snapshot", response_model=shapes.JobReply, status_code=202)
async def snapshot(request: Request, visitor: CuratorOnly) -> Response:
    """Read the source anew. Its result is the report, for the curator's eyes only; questions are
    charged anew then.
    """
    desk = desk_of(request)

    def work(progress: Progress) -> dict[str, Any]:
        made = desk.curator.snapshot(progress=progress)
        return {"number": made.number, "report": upkeep.snapshot_report(made, desk.curator.policy)}

    return begin_reply(jobs_of(request).begin(visitor, "snapshot", work))


@router.post("/bounds", response_model=dict[str, Any])
async def bounds(request: Request, body: shapes.BoundsBody, visitor: CuratorOnly) -> Response:
    """Suggest a range for a column: a paid question of the curator."""
    desk = desk_of(request)

    def work() -> dict[str, Any]:
        found = desk.curator.bounds(body.table, body.column, epsilon=body.epsilon)
        ends = {"low": plain_value(found.low), "high": plain_value(found.high)}
        return {
            **ends,
            "rows_beyond": found.ranks,
            "cost": found.cost.as_json(),
            "says": str(found),
        }

    return JSONResponse(await desk.work(visitor, work))


@router.get("/policy", response_model=shapes.PolicyReply)
async def policy(request: Request, visitor: CuratorOnly) -> Response:
    """Return the policy file as it is now, with *** for passwords; `served` says whether the
    server answers by this text.
    """
    own = desk_of(request).curator.policy
    text = _read(own.path)
    served = _is_served(own, text)
    return JSONResponse({"text": hide_passwords(text), "file": own.path.name, "served": served})


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise Refusal(500, "policy", "The policy file cannot be read.") from None


def _is_served(own: Policy, text: str) -> bool:
    try:
        return Policy.parse(text, path=own.path) == own
    except PolicyError:
        return False


@router.post("/policy/preview", response_model=shapes.PreviewReply)
async def preview(request: Request, body: shapes.PolicyBody, visitor: CuratorOnly) -> Response:
    """Return every mistake of a policy's text with its place; of one without mistakes, what it
    would change.
    """
    desk = desk_of(request)

    def work() -> dict[str, Any]:
        try:
            after = Policy.parse(body.text, path=desk.curator.policy.path)
        except PolicyError as error:
            return {"problems": _problems(error.problems), "changes": []}
        return {"problems": [], "changes": upkeep.preview(desk.curator.policy, after)}

    return JSONResponse(await desk.work(visitor, work))


@router.put("/policy", response_model=shapes.PreviewReply)
async def write_policy(request: Request, body: shapes.PolicyBody, visitor: CuratorOnly) -> Response:
    """Write the policy file; where the text has *** for a password, the file keeps its own. The
    server answers by it when it is started again.
    """
    desk = desk_of(request)
    own = desk.curator.policy

    def work() -> dict[str, Any]:
        text = restore_passwords(body.text, _read(own.path))
        after = Policy.parse(text, path=own.path)
        for name in FIXED:
            if getattr(after, name) != getattr(own, name):
                key = name.removesuffix("_address")
                hint = "Change it on the server's machine."
                raise Refusal(
                    403,
                    "denied",
                    f"{key} says where something is on the server.",
                    hint,
                    code="42501",
                )
        new = own.path.with_name(f"{own.path.name}.new")
        new.write_text(text, encoding="utf-8")
        os.chmod(new, own.path.stat().st_mode & 0o777)
        os.replace(new, own.path)
        return {"problems": [], "changes": upkeep.preview(own, after)}

    return JSONResponse(await desk.work(visitor, work))


def _problems(problems: tuple[Problem, ...]) -> list[dict[str, Any]]:
    return [
        {"line": each.line, "column": each.column, "message": each.message} for each in problems
    ]


@router.post("/describe", response_model=shapes.JobReply, status_code=202)
async def describe(
    request: Request, body: shapes.DescriptionBody, visitor: CuratorOnly
) -> Response:
    """Describe a table for synthetic rows: one charge of the curator. Its result has the
    description's link.
    """
    desk = desk_of(request)

    def work(progress: Progress) -> dict[str, Any]:
        made = desk.curator.describe(
            body.table,
            epsilon=body.epsilon,
            analyst=CURATOR,
            columns=body.columns,
            progress=progress,
        )
        link = desk.answers.keep_description(visitor.user.name, body.table, made.to_bytes())
        return {
            "link": link,
            "table": body.table,
            "rows": made.rows,
            "cost": made.cost,
            "warnings": [*made.warnings],
        }

    return begin_reply(jobs_of(request).begin(visitor, "describe", work))
