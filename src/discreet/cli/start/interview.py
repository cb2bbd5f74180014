"""`init --page`: the questions about a new policy on a page, for one browser of this machine.

The page is served on the loopback interface under an address that holds a fresh secret, until it is
finished or Ctrl-C. It loads nothing, runs nothing, and shows names and types alone, as the draft
does.
"""

from __future__ import annotations

import hmac
from enum import StrEnum
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock
from urllib.parse import parse_qs

from discreet.engines.drafts.dialogue import LEAVE_OUT, Question, apply_answer, questions, reply_to
from discreet.engines.drafts.draft import Draft
from discreet.errors import DiscreetError
from discreet.files import write_file
from discreet.pages import blocks, forms
from discreet.server.fresh import fresh_text

_MOST = 64 << 10  # bytes of a form
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Do(StrEnum):
    """The action of a button."""

    NEXT = "next"
    BACK = "back"
    REST = "rest"
    WRITE = "write"


def ask_on_a_page(draft: Draft, *, out: Path) -> Draft:
    """Ask all questions about a draft in a browser, write the policy, and return the draft with the
    answers.
    """
    interview = Interview(draft, out=out)
    with Listener(interview) as listener:
        print(f"Open {listener.address} in a browser of this machine.")
        print("The address is a secret. Ctrl-C ends it, and writes nothing.", flush=True)
        while not listener.done.is_set():
            listener.handle_request()
    return interview.draft


class Interview:
    """A draft and the place of the next question; `page` shows it and `take` reads the reply."""

    def __init__(self, draft: Draft, *, out: Path) -> None:
        self.draft = draft
        self.place = 0
        self.settled = False
        self._out = out
        self._lock = Lock()
        self._refused = ""

    def page(self) -> str:
        """Return the page of the next question, or of the whole policy where none is left."""
        with self._lock:
            return self._page()

    def take(self, fields: dict[str, str]) -> str:
        """Read what was sent, and return the page that follows."""
        with self._lock:
            match fields.get("do"):
                case Do.BACK:
                    self.place = max(0, self.place - 1)
                case Do.REST:
                    self.place = len(questions(self.draft))
                case Do.WRITE if self.place >= len(questions(self.draft)):
                    return self._write()
                case Do.NEXT if self.place < len(questions(self.draft)):
                    return self._answer(fields)
            return self._page()

    def _write(self) -> str:
        try:
            write_file(self._out, self.draft.text())
        except DiscreetError as error:
            return _review(self.draft, self._out, wrong=str(error))
        self.settled = True
        return _written(self._out)

    def _answer(self, fields: dict[str, str]) -> str:
        question = questions(self.draft)[self.place]
        # A form that is older than the question, after a reload or from a second tab, answers nothing.
        if fields.get("question") != question.title:
            return self._page()
        choice = fields.get("choice", "")
        written = fields.get("other", "")
        if written.strip() and written != self._refused:
            choice = forms.OTHER  # whoever writes means it, whichever choice was marked before
        reply = reply_to(question, written if choice == forms.OTHER else choice)
        if choice == forms.OTHER and not written.strip():
            return self._page(wrong="Write it into the field, or choose another answer.")
        if not reply.settled:
            self._refused = written
            return self._page(wrong=reply.told, written=written)
        self.draft = apply_answer(self.draft, question, reply.declaration)
        self.place += 1
        return self._page()

    def _page(self, *, wrong: str = "", written: str = "") -> str:
        waiting = questions(self.draft)
        if self.place >= len(waiting):
            return _review(self.draft, self._out)
        return _question_text(
            waiting[self.place], self.place, len(waiting), wrong=wrong, written=written
        )


def _question_text(question: Question, place: int, many: int, *, wrong: str, written: str) -> str:
    chosen = question.suggestion if question.suggestion is not None else LEAVE_OUT
    offered = [
        forms.choice(
            each.answer,
            "leave it out" if each.answer == LEAVE_OUT else each.answer,
            each.told,
            chosen=not wrong and each.answer == chosen,
        )
        for each in question.choices
    ]
    buttons = [(Do.NEXT, "Next"), *([(Do.BACK, "Back")] if place else [])]
    parts = [
        *(blocks.paragraph(line, kind="soft") for line in question.told),
        *([blocks.warning(wrong)] if wrong else []),
        forms.form(
            [
                forms.hidden("question", question.title),
                *offered,
                forms.other(written, question.example, chosen=bool(wrong)),
                forms.buttons([*buttons, (Do.REST, "Keep the rest as suggested")]),
            ]
        ),
    ]
    return blocks.page(question.title, parts, subtitle=f"Question {place + 1} of {many}")


def _review(draft: Draft, out: Path, *, wrong: str = "") -> str:
    parts = [
        *([blocks.warning(wrong)] if wrong else []),
        blocks.paragraph(
            "Columns that are commented out cannot be asked about; they cost nothing."
        ),
        blocks.code(draft.text()),
        forms.form([forms.buttons([(Do.WRITE, f"Write {out}"), (Do.BACK, "Back")])]),
    ]
    return blocks.page("The policy", parts, subtitle="Nothing is written yet")


def _written(out: Path) -> str:
    parts = [
        blocks.paragraph("You can close this page. In the terminal:"),
        blocks.code(f"discreet check {out}"),
    ]
    return blocks.page(f"{out} is written", parts)


class Listener(ThreadingHTTPServer):
    """The page's address on this machine; only a browser that knows the secret in it may read the
    page.
    """

    def __init__(self, interview: Interview) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.interview = interview
        self.secret = fresh_text(24)
        self.timeout = 0.5
        self.done = Event()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def address(self) -> str:
        return f"http://{self.host}/{self.secret}/"


class _Handler(BaseHTTPRequestHandler):
    """Answer two requests, GET and POST of the secret address, and no other."""

    server: Listener
    timeout = 10  # seconds for a request to arrive

    def do_GET(self) -> None:
        if self._is_known():
            self._send(self.server.interview.page())

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not self._is_known():
            return
        if not length.isdecimal() or int(length) > _MOST:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        sent = parse_qs(self.rfile.read(int(length)).decode("utf-8", "replace"))
        self._send(self.server.interview.take({name: values[0] for name, values in sent.items()}))
        if self.server.interview.settled:  # and whoever asked has the last page
            self.server.done.set()

    def _is_known(self) -> bool:
        """Return True for the secret address under its own host; another host is a rebound name."""
        path = self.path.strip("/").encode()
        known = hmac.compare_digest(path, self.server.secret.encode())
        if known and self.headers.get("Host") == self.server.host:
            return True
        self._refuse(HTTPStatus.NOT_FOUND)
        return False

    def _refuse(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self.end_headers()

    def _send(self, page: str) -> None:
        content = page.encode()
        self.send_response(HTTPStatus.OK)
        for name, value in {**_HEADERS, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the address is a secret."""
