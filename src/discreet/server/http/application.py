"""The app of the HTTP door: its routes, its middleware and its error handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

import discreet
from discreet.errors import DiscreetError
from discreet.server.auth import Denied
from discreet.server.doorway import Doorway, NoRoom
from discreet.server.http import curating, jobs, pages, publishing, questions, shapes
from discreet.server.http.faults import Refusal
from discreet.server.http.guard import Guard
from discreet.server.http.jobs import Jobs
from discreet.server.http.kept import Answers
from discreet.server.http.questions import Desk, desk_of
from discreet.server.http.sessions import LONGEST, Sessions
from discreet.server.http.visitors import (
    Anyone,
    Reception,
    Visitor,
    address_of,
    reception_of,
    require_same_origin,
)
from discreet.server.queue import Crowded, Stopping

ROOT = "/api/v1"
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": shapes.ErrorReply, "description": description}
    for status, description in (
        (400, "The request is wrong"),
        (401, "Nobody is logged in"),
        (402, "Not enough budget is left"),
        (403, "Not for this role, or not from the page"),
        (404, "There is none"),
        (406, "No such format"),
        (408, "Too slow"),
        (409, "The key was used for another question"),
        (413, "Too large"),
        (422, "The question is refused, with its place; or a field is wrong"),
        (429, "Too many wait, or too many logins failed"),
        (500, "The engine or the server failed"),
        (503, "The ledger is unavailable, or the server stops"),
    )
}
OPEN = (f"{ROOT}/health", f"{ROOT}/login")  # for everybody
OURS = (Refusal, DiscreetError, Denied, Crowded, Stopping, NoRoom)

door_routes = APIRouter()


@door_routes.get("/health", response_model=shapes.HealthReply)
async def health() -> Response:
    """Say that the server answers. For everybody."""
    return JSONResponse({"status": "ok"})


@door_routes.post("/login", response_model=shapes.SessionReply)
async def login(request: Request, body: shapes.LoginBody) -> Response:
    """Log in by password: begins a session by a cookie, and tells its CSRF token."""
    require_same_origin(request)
    reception = reception_of(request)
    gate = reception.door.gate
    address = address_of(request)
    user = await asyncio.to_thread(gate.password, body.user, body.password, address=address)
    old = request.cookies.get(reception.cookie)
    if old is not None:
        reception.sessions.end(old)
    secret, session = reception.sessions.begin(user)
    reply = JSONResponse(_told(request, Visitor(user=user, session=session)))
    reply.set_cookie(
        reception.cookie,
        secret,
        max_age=int(LONGEST),
        path="/",
        secure=reception.secure,
        httponly=True,
        samesite="strict",
    )
    return reply


@door_routes.post("/logout", status_code=204, response_class=Response)
async def logout(request: Request, visitor: Anyone) -> Response:
    """End the session."""
    reception = reception_of(request)
    reception.sessions.end(request.cookies.get(reception.cookie, ""))
    reply = Response(status_code=204)
    reply.delete_cookie(
        reception.cookie, path="/", secure=reception.secure, httponly=True, samesite="strict"
    )
    return reply


@door_routes.get("/session", response_model=shapes.SessionReply)
async def session(request: Request, visitor: Anyone) -> Response:
    """Return your name and role, and the CSRF token of your session."""
    return JSONResponse(_told(request, visitor))


def _told(request: Request, visitor: Visitor) -> dict[str, Any]:
    policy = desk_of(request).curator.policy
    own = visitor.session
    return {
        "user": visitor.user.name,
        "role": visitor.user.role,
        "analyst": visitor.user.analyst,
        "csrf": None if own is None else own.csrf,
        "database": policy.path.stem,
        "deadline": None if policy.limits.deadline is None else float(policy.limits.deadline),
    }


def application(
    door: Doorway, *, secure: bool, proxied: bool = False, origins: Sequence[str] = ()
) -> Guard:
    """Return the app of a server: FastAPI inside what every request passes.

    Where requests are `proxied`, TLS ends at a proxy of this machine. Pages of `origins` may send
    requests with tokens, and read the replies; of other hosts' pages none may.
    """
    app = FastAPI(
        title="discreet",
        version=discreet.__version__,
        summary="Statistics about people, and nothing about any one of them.",
        openapi_url=f"{ROOT}/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    guard = Guard(app, door, secure=secure, proxied=proxied)
    answers = Answers(door.curator.policy.ledger)
    desk = Desk(door, answers)
    app.state.desk = desk
    app.state.jobs = Jobs(desk, lambda error: guard.refusal(error).as_json())
    app.state.reception = Reception(
        door=door, sessions=Sessions(idle=door.limits.idle), secure=secure
    )

    async def told(request: Request, error: Exception) -> Response:
        refusal = guard.refusal(error)
        request.state.told = True
        return JSONResponse(
            refusal.as_json(), status_code=refusal.status, headers=dict(refusal.headers)
        )

    for kind in (*OURS, Exception):
        app.add_exception_handler(kind, told)
    app.add_exception_handler(HTTPException, _other)
    app.add_exception_handler(RequestValidationError, _wrong)
    for router in (door_routes, questions.router, curating.router, publishing.router, jobs.router):
        app.include_router(router, prefix=ROOT, responses=ERRORS)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    pages.add(app)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
            expose_headers=["X-Discreet-Link"],
        )
    return guard


# whatever else is sent
_IN_JSON = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorReply"}}}


def _describe(app: FastAPI) -> dict[str, Any]:
    """Return the routes by OpenAPI, with the two ways to say who asks; made once."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        reception: Reception = app.state.reception
        found.setdefault("components", {})["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"},
            "session": {"type": "apiKey", "in": "cookie", "name": reception.cookie},
        }
        for path, methods in found["paths"].items():
            for told in methods.values():
                told["security"] = [] if path in OPEN else [{"token": []}, {"session": []}]
                for status in ERRORS:
                    told["responses"][str(status)]["content"] = _IN_JSON
        app.openapi_schema = found
    return app.openapi_schema


async def _other(request: Request, error: Exception) -> Response:
    """Return our reply to errors of the framework: no such route, no such method."""
    assert isinstance(error, HTTPException)
    told = {
        404: ("missing", "There is nothing here."),
        405: ("usage", "This cannot be done here in this way."),
    }
    kind, sentence = told.get(error.status_code, ("usage", "The request cannot be read."))
    refusal = Refusal(
        error.status_code, kind, sentence, code="02000" if kind == "missing" else "22023"
    )
    return JSONResponse(refusal.as_json(), status_code=error.status_code, headers=error.headers)


async def _wrong(request: Request, error: Exception) -> Response:
    """Return a reply that says which field of a request is wrong."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(each) for each in first["loc"])
    sentence = f"{place}: {first['msg']}."
    return JSONResponse(Refusal(422, "usage", sentence).as_json(), status_code=422)
