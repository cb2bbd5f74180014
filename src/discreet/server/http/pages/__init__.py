"""The pages for a browser, and the files that they load. No page contains data: scripts fetch it
from the API.

The files are read once, when the server starts, and requested by name. So no request can open
another file.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, select_autoescape

from discreet.pages.style import page_style
from discreet.server.http.faults import missing
from discreet.server.http.visitors import reception_of

KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
KIT = "kit.css"
# The scripts of each page. The page lists all of them, so that a browser loads them at once.
SCRIPTS = {
    "login": ("login.js", "api.js"),
    "ask": (
        *(
            "ask.js",
            "api.js",
            "elements.js",
            "numbers.js",
            "editor.js",
            "sql_words.js",
            "completion.js",
            "remedies.js",
        ),
        *("price.js", "builder.js", "answer_view.js", "chart.js", "axis.js", "drafts.js"),
    ),
    "curate": (
        *(
            "curate.js",
            "api.js",
            "elements.js",
            "numbers.js",
            "budgets.js",
            "ledger.js",
            "users.js",
            "exposure.js",
        ),
        *(
            "upkeep.js",
            "publishing.js",
            "policy_editor.js",
            "editor.js",
            "sql_words.js",
            "chart.js",
            "axis.js",
        ),
    ),
    "learn": (
        *("learn.js", "elements.js", "numbers.js", "chart.js", "axis.js", "chance.js", "slider.js"),
        *("lesson_noise.js", "lesson_coins.js", "lesson_composition.js", "lesson_differencing.js"),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFile:
    """A file as it is sent: plain, and compressed."""

    content: bytes
    packed: bytes
    kind: str
    tag: str


def static_files() -> dict[str, StaticFile]:
    """Return all files that pages load, by name."""
    contents = {KIT: page_style().encode()}
    for path in (files(__package__) / "static").iterdir():
        if path.name.endswith((".css", ".js")):
            contents[path.name] = path.read_bytes()
    return {name: _static_file(name, content) for name, content in contents.items()}


def _static_file(name: str, content: bytes) -> StaticFile:
    ending = name.rpartition(".")[2]
    digest = hashlib.sha256(content).hexdigest()
    return StaticFile(
        content=content,
        packed=gzip.compress(content, mtime=0),
        kind=KINDS[ending],
        tag=f'"{digest[:32]}"',
    )


def add(app: FastAPI) -> None:
    """Add the pages' routes to the app."""
    loaded = static_files()
    templates = Environment(
        loader=PackageLoader(__package__, "templates"), autoescape=select_autoescape()
    )

    def page(request: Request, name: str) -> Response:
        session = reception_of(request).session(request)
        role = None if session is None else session.user.role
        text = templates.get_template(f"{name}.html").render(
            page=name,
            scripts=SCRIPTS[name],
            role=role,
            user=None if session is None else session.user.name,
        )
        return HTMLResponse(text)

    def inside(request: Request, name: str) -> Response:
        """Return a page if the visitor is logged in, else send the browser to the login page, which
        leads back.
        """
        if reception_of(request).session(request) is not None:
            return page(request, name)
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(
            f"/login?next={quote(request.url.path + query, safe='')}", status_code=303
        )

    @app.get("/", include_in_schema=False)
    async def ask(request: Request) -> Response:
        return inside(request, "ask")

    @app.get("/curate", include_in_schema=False)
    async def curate(request: Request) -> Response:
        return inside(request, "curate")

    @app.get("/login", include_in_schema=False)
    async def login(request: Request) -> Response:
        return page(request, "login")

    @app.get("/learn", include_in_schema=False)
    async def learn(request: Request) -> Response:
        return page(request, "learn")

    @app.get("/static/{name}", include_in_schema=False)
    async def static(request: Request, name: str) -> Response:
        if name not in loaded:
            return JSONResponse(missing("There is nothing here.").as_json(), status_code=404)
        found = loaded[name]
        headers = {"ETag": found.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == found.tag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(
                found.packed, media_type=found.kind, headers=headers | {"Content-Encoding": "gzip"}
            )
        return Response(found.content, media_type=found.kind, headers=headers)

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return Response(status_code=204)
