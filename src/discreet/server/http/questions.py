"""An analyst's routes: tables, quote, explain, ask, budget, history, answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse

from discreet.binding import accountant_of
from discreet.budget import Budget, Charge
from discreet.curator import Curator
from discreet.display import formats
from discreet.display.show import notes
from discreet.server.doorway import Doorway
from discreet.server.http import shapes
from discreet.server.http.faults import Refusal, missing, no_price, refusal_of
from discreet.server.http.kept import Answers, KeptAnswer, Unkept, new_link, now
from discreet.server.http.visitors import Anyone, Asker, Visitor

Made = TypeVar("Made")
Format = Literal["json", "csv", "arrow", "parquet"]
MEDIA: dict[Format, str] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}
MOST_LISTED = 1_000
NEXT_TO_NOTHING = "1e-9"
IdempotencyKey = Annotated[shapes.Key | None, Header(alias="Idempotency-Key")]
ANY_FORMAT: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind.partition(";")[0]: {} for name, kind in MEDIA.items() if name != "json"}}
}

router = APIRouter()


class Desk:
    """Asks the curator for all HTTP clients of a server. Two requests with the same key at the same
    time are one question.
    """

    def __init__(self, door: Doorway, answers: Answers) -> None:
        self.door = door
        self.answers = answers
        self._under_way: dict[tuple[str, str], tuple[bytes, asyncio.Task[KeptAnswer]]] = {}

    @property
    def curator(self) -> Curator:
        return self.door.curator

    async def work(self, visitor: Visitor, work: Callable[[], Made]) -> Made:
        """Run a function on a worker, in the order of the queue."""
        began = time.monotonic()
        self.door.metrics.count("statements")
        try:
            return await self.door.queue.submit(visitor.user.name, work)
        finally:
            self.door.metrics.seconds(time.monotonic() - began)

    async def ask(self, visitor: Visitor, question: shapes.Question, key: str | None) -> KeptAnswer:
        """Answer a question, or return the answer that was given to its key before."""
        if key is None:
            return await self.work(
                visitor, lambda: self._question_text(visitor, question, None, b"")
            )
        digest = hashlib.sha256(question.model_dump_json().encode()).digest()
        place = (visitor.user.name, key)
        if place not in self._under_way:
            task = asyncio.ensure_future(
                self.work(visitor, lambda: self._once(visitor, question, key, digest))
            )
            self._under_way[place] = (digest, task)
            task.add_done_callback(lambda ended: self._end(place, ended))
        known, task = self._under_way[place]
        _require_same(known, digest)
        return await asyncio.shield(task)  # whoever goes away leaves it to those who come back

    def _end(self, place: tuple[str, str], ended: asyncio.Task[KeptAnswer]) -> None:
        del self._under_way[place]
        if not ended.cancelled():
            ended.exception()  # whoever waits is told; where nobody does, it is no mistake of ours

    def _once(
        self, visitor: Visitor, question: shapes.Question, key: str, digest: bytes
    ) -> KeptAnswer:
        try:
            known = self.answers.by_key(visitor.user.name, key)
        except Unkept as error:
            self.door.broke(error)
            known = None
        if known is None:
            return self._question_text(visitor, question, key, digest)
        _require_same(known.digest, digest)
        return known

    def _question_text(
        self, visitor: Visitor, question: shapes.Question, key: str | None, digest: bytes
    ) -> KeptAnswer:
        price = self.price(visitor, question)
        answer = self.curator.ask(question.sql, analyst=visitor.analyst, **price, **_rest(question))
        kept = KeptAnswer(
            link=new_link(),
            user=visitor.user.name,
            key=key,
            digest=digest,
            moment=now(),
            question=question.sql,
            epsilon=_say(price["epsilon"]),
            margin=_say(price["margin"]),
            cost=json.dumps(answer.cost.as_json()),
            rows=answer.table.num_rows,
            content=formats.as_arrow(formats.with_margins(answer)),
        )
        try:
            self.answers.keep(kept)
        except Unkept as error:  # it is paid for: whoever asked gets it, and asking again is free
            self.door.broke(error)
        return kept

    def price(self, visitor: Visitor, question: shapes.Question) -> dict[str, Any]:
        """Return the price of a question: as the request says, or the policy's default, or almost
        nothing if it is free.
        """
        if question.epsilon is not None or question.margin is not None:
            return {"epsilon": question.epsilon, "margin": question.margin}
        share = self.curator.policy.analysts.get(visitor.analyst)
        if share is not None and share.per_question is not None:
            return {"epsilon": share.per_question, "margin": None}
        if not self.curator.shape(
            question.sql, analyst=visitor.analyst, dialect=question.dialect
        ).free:
            raise no_price()
        return {"epsilon": NEXT_TO_NOTHING, "margin": None}


def desk_of(request: Request) -> Desk:
    found: Desk = request.app.state.desk
    return found


def _require_same(known: bytes, digest: bytes) -> None:
    if known != digest:
        hint = "Use a new key for a new question."
        raise Refusal(409, "usage", "This Idempotency-Key was used for another question.", hint)


def _rest(question: shapes.Question) -> dict[str, Any]:
    return {"assuming": question.assuming, "dialect": question.dialect}


def _say(value: object) -> str | None:
    return None if value is None else str(value)


def iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")


# --- what leaves ----------------------------------------------------------------------------------


def format_of(wanted: Format | None, accept: str) -> Format:
    """Return the wanted format: that of ?format=, else the first of the Accept header that we have,
    else JSON.
    """
    if wanted is not None:
        return wanted
    kinds = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    known = {media.partition(";")[0]: name for name, media in MEDIA.items()}
    for kind in kinds:
        if kind in known:
            return known[kind]
    if any(kind in ("", "*/*", "application/*") for kind in kinds):
        return "json"
    hint = f"Accept one of {', '.join(known)}; or add ?format=csv."
    raise Refusal(406, "usage", "Answers have none of the formats that are accepted.", hint)


def as_json(kept: KeptAnswer) -> dict[str, Any]:
    """Return a kept answer as JSON."""
    answer = formats.from_arrow(kept.content)
    told = answer.as_json()
    return told | {
        "types": [str(kind) for kind in answer.table.schema.types],
        "link": kept.link,
        "question": kept.question,
        "notes": notes(answer),
        "certificate": answer.certificate,
    }


def render(kept: KeptAnswer, format: Format) -> bytes:
    """Return a kept answer in a format: always the same bytes."""
    if format == "json":
        return json.dumps(as_json(kept), ensure_ascii=False).encode()
    if format == "arrow":
        return kept.content
    return formats.rows_as(formats.read_arrow(kept.content), format)


async def _reply(desk: Desk, kept: KeptAnswer, format: Format) -> Response:
    large = len(kept.content) > 1 << 16
    body = await asyncio.to_thread(render, kept, format) if large else render(kept, format)
    with desk.door.room(len(body)):  # refused before the first byte where there is none
        pass
    headers = {"X-Discreet-Link": kept.link}
    if format != "json":
        headers["Content-Disposition"] = f'attachment; filename="answer.{format}"'
    return Response(body, media_type=MEDIA[format], headers=headers)


# --- routes ---------------------------------------------------------------------------------------


@router.get("/tables", response_model=shapes.TablesReply)
async def tables(request: Request, visitor: Anyone) -> Response:
    """Return tables and columns with what they may hold, from the policy alone. Free."""
    curator = desk_of(request).curator
    told = {"database": curator.policy.path.stem, "unit": curator.policy.unit}
    return JSONResponse(told | {"tables": [table.as_json() for table in curator.tables()]})


@router.post("/quote", response_model=shapes.QuoteReply)
async def quote(request: Request, question: shapes.Question, visitor: Asker) -> Response:
    """Return what a question would cost and how wrong the answer would be. Free; touches no
    data.
    """
    desk = desk_of(request)

    def work() -> Mapping[str, Any]:
        price = desk.price(visitor, question)
        return desk.curator.quote(
            question.sql, analyst=visitor.analyst, **price, **_rest(question)
        ).as_json()

    return JSONResponse(await desk.work(visitor, work))


@router.post("/explain", response_model=shapes.ExplanationReply)
async def explain(request: Request, question: shapes.Question, visitor: Asker) -> Response:
    """Return what would be read, noised and computed, in numbered sentences. Free; touches no
    data.
    """
    desk = desk_of(request)

    def work() -> str:
        price = desk.price(visitor, question)
        return desk.curator.explain(
            question.sql, analyst=visitor.analyst, **price, **_rest(question)
        )

    return JSONResponse({"explanation": (await desk.work(visitor, work)).split("\n")})


@router.post("/ask", response_model=shapes.AnswerReply, responses=ANY_FORMAT)
async def ask(
    request: Request,
    question: shapes.Question,
    visitor: Asker,
    key: IdempotencyKey = None,
    format: Annotated[Format | None, Query()] = None,
) -> Response:
    """Answer a question, at its price. The same question again is free; the same key gives the same
    bytes.
    """
    desk = desk_of(request)
    wanted = format_of(format, request.headers.get("accept", ""))
    return await _reply(desk, await desk.ask(visitor, question, key), wanted)


@router.post("/ask_all", response_model=shapes.AnswersReply)
async def ask_all(
    request: Request, body: shapes.Questions, visitor: Asker, key: IdempotencyKey = None
) -> Response:
    """Answer several questions, one after the other; each gets its answer, or its own error."""
    desk = desk_of(request)
    found = list[dict[str, Any]]()
    for place, question in enumerate(body.questions):
        try:
            kept = await desk.ask(visitor, question, None if key is None else f"{key}#{place}")
            found.append(as_json(kept))
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            found.append(refusal.as_json())
    return JSONResponse({"answers": found})


@router.get("/budget", response_model=shapes.BudgetReply)
async def budget(request: Request, visitor: Asker) -> Response:
    """Return what is left to you, and of how much."""
    desk = desk_of(request)
    policy, name = desk.curator.policy, visitor.analyst
    share = policy.analysts.get(name)
    found = (await desk.work(visitor, desk.curator.spending))[name]
    default = None if share is None or share.per_question is None else str(share.per_question)
    told = {part: getattr(found, part).as_json() for part in ("left", "limit", "spent")}
    most = str(policy.limits.epsilon)
    return JSONResponse(
        {"analyst": name, **told, "per_question": default, "most_per_question": most}
    )


@router.get("/history", response_model=shapes.HistoryReply)
async def history(request: Request, visitor: Asker) -> Response:
    """Return what you asked: answers given over HTTP, newest first, and everything that was charged
    to you.
    """
    desk = desk_of(request)

    def work() -> dict[str, Any]:
        kept = desk.answers.of(visitor.user.name, most=MOST_LISTED)
        charges = desk.curator.ledger(analyst=visitor.analyst)
        return {
            "answers": [_list(each) for each in kept],
            "charges": list_charges(desk.curator, reversed(charges[-MOST_LISTED:])),
        }

    return JSONResponse(await desk.work(visitor, work))


def _list(kept: KeptAnswer) -> dict[str, Any]:
    told = {name: getattr(kept, name) for name in ("link", "question", "epsilon", "margin", "rows")}
    return told | {"when": iso(kept.moment), "cost": json.loads(kept.cost)}


def list_charges(curator: Curator, entries: Iterable[Any]) -> list[dict[str, Any]]:
    """Return lines of the ledger as JSON."""
    accountant = accountant_of(curator.policy)

    def line(entry: Any) -> dict[str, Any]:
        return {
            "id": str(entry.id),
            "when": entry.when,
            "analyst": entry.analyst,
            "question": entry.text,
            "cost": accountant.budget(entry.cost).as_json(),
            "snapshot": entry.snapshot,
            "state": entry.state,
        }

    return [line(entry) for entry in entries]


@router.get("/answers/{link}", response_model=shapes.AnswerReply, responses=ANY_FORMAT)
async def answer(
    request: Request, link: str, visitor: Anyone, format: Annotated[Format | None, Query()] = None
) -> Response:
    """Return an answer that was given, by its link: whoever knows the link and may log in sees it,
    as it was. Free.

    To another than who asked, `left` is the reader's own.
    """
    desk = desk_of(request)
    wanted = format_of(format, request.headers.get("accept", ""))

    def work() -> KeptAnswer:
        kept = desk.answers.by_link(link)
        if kept is None:
            raise missing("There is no answer of this link.")
        if kept.user == visitor.user.name:
            return kept
        return replace(
            kept, content=formats.with_left(kept.content, _left_to(desk.curator, visitor))
        )

    return await _reply(desk, await desk.work(visitor, work), wanted)


def _left_to(curator: Curator, visitor: Visitor) -> Budget:
    if visitor.user.analyst is None:
        return accountant_of(curator.policy).left(Charge(amount=Fraction(0)))
    return curator.left(analyst=visitor.user.analyst)
