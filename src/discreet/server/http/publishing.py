"""The routes of releases, publications and descriptions: every user may read them, and the curator
starts and runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from discreet.display import formats
from discreet.server.http import shapes
from discreet.server.http.faults import missing
from discreet.server.http.jobs import Progress, begin_reply, jobs_of
from discreet.server.http.questions import MEDIA, Format, desk_of, iso
from discreet.server.http.visitors import Anyone, CuratorOnly, Overseer

router = APIRouter()


@router.get("/releases", response_model=shapes.NamesReply)
async def releases(request: Request, visitor: Anyone) -> Response:
    """Return the names of the policy's releases."""
    return JSONResponse({"names": [*desk_of(request).curator.policy.releases]})


@router.get("/releases/{name:path}/page", response_class=HTMLResponse)
async def release_page(request: Request, name: str, visitor: Anyone) -> Response:
    """Return what a release has published so far, as one HTML page."""
    from discreet.continual.page import page

    desk = desk_of(request)
    return HTMLResponse(
        await desk.work(visitor, lambda: page(desk.curator.release(name).show())), headers=_ALONE
    )


@router.get("/releases/{name:path}/quote", response_model=dict[str, Any])
async def release_quote(request: Request, name: str, visitor: CuratorOnly) -> Response:
    """Return what starting a release would cost, and its margins. Free."""
    desk = desk_of(request)
    return JSONResponse(
        await desk.work(visitor, lambda: desk.curator.release(name).quote().as_json())
    )


@router.get("/releases/{name:path}", response_model=dict[str, Any])
async def release(
    request: Request, name: str, visitor: Anyone, consistent: bool = False
) -> Response:
    """Return what a release has published so far. Free; reads no data."""
    desk = desk_of(request)

    def work() -> dict[str, Any]:
        series = desk.curator.release(name).show()
        return (series.consistent() if consistent else series).as_json()

    return JSONResponse(await desk.work(visitor, work))


@router.post("/releases/{name:path}/start", response_model=shapes.JobReply, status_code=202)
async def start_release(request: Request, name: str, visitor: CuratorOnly) -> Response:
    """Pay once for a release over its whole horizon."""
    desk = desk_of(request)
    return _job(request, visitor, "start", lambda: desk.curator.release(name).start().as_json())


@router.post("/releases/{name:path}/run", response_model=shapes.JobReply, status_code=202)
async def run_release(request: Request, name: str, visitor: CuratorOnly) -> Response:
    """Publish every period that is over and not yet published."""
    desk = desk_of(request)
    return _job(request, visitor, "release", lambda: desk.curator.release(name).run().as_json())


@router.get("/publications", response_model=shapes.NamesReply)
async def publications(request: Request, visitor: Anyone) -> Response:
    """Return the names of the policy's publications."""
    return JSONResponse({"names": [*desk_of(request).curator.policy.publications]})


@router.get("/publications/{name:path}/page", response_class=HTMLResponse)
async def publication_page(request: Request, name: str, visitor: Anyone) -> Response:
    """Return what was published, as one HTML page."""
    from discreet.census.page import page

    desk = desk_of(request)
    found = await desk.work(visitor, lambda: page(desk.curator.publication(name).show()))
    return HTMLResponse(found, headers=_ALONE)


@router.get("/publications/{name:path}/quote", response_model=dict[str, Any])
async def publication_quote(request: Request, name: str, visitor: CuratorOnly) -> Response:
    """Return what a publication would cost, and its margins. Free."""
    desk = desk_of(request)
    return JSONResponse(
        await desk.work(visitor, lambda: desk.curator.publication(name).quote().as_json())
    )


@router.get("/publications/{name:path}", response_model=dict[str, Any])
async def publication(request: Request, name: str, visitor: Anyone) -> Response:
    """Return what was published: sizes, margins and the certificate. Free; reads no data."""
    desk = desk_of(request)
    return JSONResponse(
        await desk.work(visitor, lambda: desk.curator.publication(name).show().as_json())
    )


@router.post("/publications/{name:path}/run", response_model=shapes.JobReply, status_code=202)
async def run_publication(request: Request, name: str, visitor: CuratorOnly) -> Response:
    """Pay for a publication and make it. Running it again is free."""
    desk = desk_of(request)
    return _job(request, visitor, "publish", lambda: desk.curator.publication(name).run().as_json())


def _job(
    request: Request, visitor: CuratorOnly, kind: str, work: Callable[[], dict[str, Any]]
) -> Response:
    def quietly(_: Progress) -> dict[str, Any]:
        return work()

    return begin_reply(jobs_of(request).begin(visitor, kind, quietly))


# A page of the kit contains its style, loads nothing and has no script.
_ALONE = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
}


@router.get("/descriptions", response_model=shapes.DescriptionsReply)
async def descriptions(request: Request, visitor: Overseer) -> Response:
    """Return the descriptions that were made over HTTP, newest first. Every user can open one by
    its link.
    """
    desk = desk_of(request)
    found = await desk.work(visitor, desk.answers.descriptions)
    listed = [{"link": link, "table": table, "when": iso(moment)} for link, table, moment in found]
    return JSONResponse({"descriptions": listed})


@router.get("/descriptions/{link}/rows", response_model=dict[str, Any])
async def synthetic_rows(
    request: Request,
    link: str,
    visitor: Anyone,
    rows: Annotated[int, Query(ge=1, le=100_000)] = 1_000,
    format: Annotated[Format, Query()] = "csv",
) -> Response:
    """Return synthetic rows drawn from a description. Free; the rows differ every time."""
    desk = desk_of(request)

    def work() -> bytes:
        content = desk.answers.description(link)
        if content is None:
            raise missing("There is no description of this link.")
        table = desk.curator.generate(content, rows=rows)
        return formats.rows_as(table, format)

    return Response(await desk.work(visitor, work), media_type=MEDIA[format])
