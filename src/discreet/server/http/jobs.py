"""Run long work: one request begins it, and others follow its progress as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from discreet.server.fresh import fresh_text
from discreet.server.http import shapes
from discreet.server.http.faults import missing
from discreet.server.http.questions import Desk
from discreet.server.http.visitors import Anyone, Visitor

MOST = 200  # jobs that are remembered
BEAT = 15.0  # seconds after which a stream without news says that it is alive
Progress = Callable[[str, float], None]
State = Literal["running", "done", "failed"]

router = APIRouter()


@dataclass(eq=False, kw_only=True)
class Job:
    """One piece of long work, with its events so far."""

    id: str
    kind: str
    user: str
    state: State = "running"
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def as_json(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in ("id", "kind", "state", "result", "error")}
        return told | {"events": f"/api/v1/jobs/{self.id}/events"}

    async def tell(self, name: str, content: dict[str, Any]) -> None:
        """Add an event, and wake up all listeners."""
        async with self.news:
            self.events.append((name, content))
            self.news.notify_all()


class Jobs:
    """The jobs of one server, newest last."""

    def __init__(self, desk: Desk, failure: Callable[[Exception], dict[str, Any]]) -> None:
        self._desk = desk
        self._failure = failure
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, visitor: Visitor, kind: str, work: Callable[[Progress], dict[str, Any]]) -> Job:
        """Begin work on a worker; `work` is handed a function that takes what is read and how much
        of it is done.
        """
        job = Job(id=fresh_text(12), kind=kind, user=visitor.user.name)
        self._jobs[job.id] = job
        while len(self._jobs) > MOST:
            self._jobs.popitem(last=False)
        task = asyncio.ensure_future(self._run(job, visitor, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    async def _run(
        self, job: Job, visitor: Visitor, work: Callable[[Progress], dict[str, Any]]
    ) -> None:
        loop = asyncio.get_running_loop()

        def progress(name: str, share: float) -> None:
            told = job.tell("progress", {"of": name, "share": round(float(share), 3)})
            asyncio.run_coroutine_threadsafe(told, loop)

        try:
            job.result = await self._desk.work(visitor, lambda: work(progress))
            job.state = "done"
            await job.tell("done", job.result)
        except Exception as error:
            job.error = self._failure(error)["error"]
            job.state = "failed"
            await job.tell("failed", {"error": job.error})

    def of(self, visitor: Visitor, id: str) -> Job:
        """Return a job of a user. For the job of another user, answer as if it did not exist."""
        job = self._jobs.get(id)
        if job is None or job.user != visitor.user.name:
            raise missing("There is no such job.")
        return job


def jobs_of(request: Request) -> Jobs:
    found: Jobs = request.app.state.jobs
    return found


def begin_reply(job: Job) -> Response:
    """Return the reply to the request that began a job."""
    return JSONResponse(job.as_json(), status_code=202)


@router.get("/jobs/{id}", response_model=shapes.JobReply)
async def job(request: Request, id: str, visitor: Anyone) -> Response:
    """Return the state of one of your jobs."""
    return JSONResponse(jobs_of(request).of(visitor, id).as_json())


@router.get(
    "/jobs/{id}/events",
    responses={200: {"content": {"text/event-stream": {}}}},
    response_class=Response,
)
async def events(request: Request, id: str, visitor: Anyone) -> Response:
    """Send the events of one of your jobs: from its beginning, or after Last-Event-ID, to its
    end.
    """
    found = jobs_of(request).of(visitor, id)
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 10 else 0
    return StreamingResponse(_stream(found, after), media_type="text/event-stream")


async def _stream(job: Job, place: int) -> AsyncIterator[bytes]:
    while True:
        for number, (name, content) in enumerate(job.events[place:], place + 1):
            data = json.dumps(content, ensure_ascii=False)
            yield f"id: {number}\nevent: {name}\ndata: {data}\n\n".encode()
            place = number
        if job.state != "running" and place >= len(job.events):
            return
        try:
            async with asyncio.timeout(BEAT), job.news:
                while len(job.events) <= place:
                    await job.news.wait()
        except TimeoutError:
            yield b": still here\n\n"
