"""The commands `respond` and `collect`: the two sides of local privacy."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.printing.formats import Format, ReportFormat, print_json
from discreet.errors import UsageError
from discreet.files import require_writable, write_file

if TYPE_CHECKING:
    from discreet.local.collector.collector import ReportStore, Sums
    from discreet.local.question import Survey, SurveyQuestion
    from discreet.local.respondent.device import Device, Submission


SurveyFile = Annotated[
    Path, typer.Argument(metavar="SURVEY", help="The survey: YAML, or its compiled JSON.")
]
StoreFile = Annotated[
    Path | None,
    typer.Option("--store", help="The file of collected reports; by default beside the survey."),
]

_MOST_RECEIPT = 1 << 16  # bytes of a collector's reply

collect = typer.Typer(
    no_args_is_help=True, help="Collect randomized reports, and estimate from them."
)


def register(app: typer.Typer) -> None:
    app.command()(respond)
    app.add_typer(collect, name="collect")


def respond(
    survey: SurveyFile,
    answer: Annotated[
        list[str] | None,
        typer.Option(help="An answer, as name=value, instead of asking you; may be repeated."),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="Send the reports to the collector at this address.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Append the reports to this file.")] = None,
    state: Annotated[
        Path | None, typer.Option(help="The file in which this device remembers what you sent.")
    ] = None,
    round: Annotated[
        str | None,
        typer.Option(help="The name of this round, for questions that are asked repeatedly."),
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(help="From now on, the most ε that all surveys together may cost you."),
    ] = None,
    format: ReportFormat = Format.table,
) -> None:
    """Answer a survey. Your answers are randomized on this machine, and you see the coins that did
    it.
    """
    from discreet.local.question import submission
    from discreet.local.respondent.device import Device, default_path

    require_writable(out)
    _require_address(to)
    asked = _survey(survey)
    device = Device(state or default_path())
    if limit is not None:
        device.set_limit(limit)
    given = _answers_given(asked, answer)
    sent = _answer(asked, device, given, round, quiet=format is Format.json)
    if not sent:
        raise UsageError("No question was answered, so nothing is sent.")
    reports: dict[str, Any] = {}
    for each in sent:
        reports.update({**each.earlier, each.key: each.report})
    line = submission(asked, device.respondent(asked), reports)
    receipt = None
    if out is not None:
        with open(out, "ab") as file:
            file.write(line)
    if to is not None:
        receipt = _post(to, line)
    if format is Format.json:
        print_json({"sent": json.loads(line), "receipt": receipt})
    elif receipt is not None:
        print(
            f"The collector accepted {receipt['accepted']} reports and had {receipt['repeated']} already."
        )
    elif out is None:
        print("This is all there is to send; --to ADDRESS sends it, --out FILE keeps it:")
        print(line.decode(), end="")


def _answers_given(survey: Survey, answer: list[str] | None) -> dict[str, str] | None:
    if answer is None:
        return None
    answers = {}
    for text in answer:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"Write --answer name=value, not {text!r}.")
        answers[survey.question(name.strip()).name] = value
    return answers


def _answer(
    survey: Survey, device: Device, given: dict[str, str] | None, round: str | None, *, quiet: bool
) -> list[Submission]:
    """Take the given answers, or ask for them; then randomize each and show how.

    Nothing is drawn before all answers are in: a refused answer leaves no report behind.
    """
    from discreet.local.respondent.terminal import greeting

    if not quiet:
        for line in greeting(survey, device):
            print(line)
    chosen: list[tuple[SurveyQuestion, Any]] = []
    for question in survey.questions:
        value = None
        if given is None:
            value = _ask(question)
        elif question.name in given:
            value = question.answer(given[question.name])
        if value is not None:
            chosen.append((question, value))
    if not quiet and given is None:
        print()
    sent = []
    for question, value in chosen:
        each = device.answer(survey, question, value, round=_round(question, round))
        sent.append(each)
        if not quiet:
            _show(question, each, value)
    return sent


def _round(question: SurveyQuestion, round: str | None) -> str:
    from datetime import UTC, datetime

    if question.numbered:
        return question.checked_round(round or "")
    if not question.repeats:
        return ""
    return round or datetime.now(UTC).date().isoformat()


def _ask(question: SurveyQuestion) -> Any:
    """Ask until an answer is in the domain; return None if the respondent leaves it out."""
    from discreet.local.respondent.terminal import ask

    while True:
        typed = typer.prompt(ask(question), default="", show_default=False)
        if not typed.strip():
            return None
        try:
            return question.answer(typed)
        except UsageError as error:
            print(error)


def _show(question: SurveyQuestion, sent: Submission, answer: Any) -> None:
    from discreet.local.respondent.terminal import coins, meaning

    said = answer if isinstance(answer, str | int) else ", ".join(answer)
    print(f"{question.ask}\n  you said: {said}")
    for line in coins(question, sent):
        print(f"  {line}")
    if not sent.draws:
        print("  you have answered this before: the same report is sent again, and costs nothing")
    if sent.held:
        print(
            "  your answer has changed as often as it may: this report is made from the answer "
            "before, and nobody can tell"
        )
    for line in meaning(question, sent, answer):
        print(f"  {line}")
    print()


def _require_address(address: str | None) -> None:
    if address is not None and not address.startswith(("http://", "https://")):
        raise UsageError(f"A collector's address begins with http:// or https://, not {address!r}.")


def _post(address: str, line: bytes) -> dict[str, Any]:
    from http.client import HTTPException
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    from discreet.local.collector.collector import REASONS

    request = Request(
        address.rstrip("/") + "/reports", data=line, headers={"Content-Type": "text/plain"}
    )
    try:
        with urlopen(request, timeout=30) as reply:
            receipt = json.loads(reply.read(_MOST_RECEIPT))
        # Take numbers alone: a text from the collector would reach the respondent's terminal.
        refused = receipt["refused"]
        return {
            "accepted": int(receipt["accepted"]),
            "repeated": int(receipt["repeated"]),
            "refused": {reason: int(refused[reason]) for reason in REASONS if reason in refused},
        }
    except (URLError, OSError, ValueError, TypeError, KeyError, RecursionError, HTTPException):
        raise UsageError(
            "The collector did not take the reports. Send them again: they stay the same."
        ) from None


def _survey(path: Path) -> Survey:
    from discreet.local import question, survey

    if path.suffix == ".json":
        try:
            return question.from_json(json.loads(path.read_text(encoding="utf-8")))
        except UsageError:
            raise
        except (OSError, ValueError, RecursionError):
            raise UsageError(f"{path} cannot be read as a compiled survey.") from None
    return survey.read(path)


def _store(path: Path, survey: Survey, store: Path | None) -> ReportStore:
    from discreet.local.collector.collector import ReportStore

    return ReportStore(store or path.with_suffix(".reports"), survey)


@collect.command()
def serve(
    survey: SurveyFile,
    store: StoreFile = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0 for any free one.")
    ] = 8787,
    url: Annotated[
        str | None,
        typer.Option(help="The address that respondents use, if it differs: https://..."),
    ] = None,
) -> None:
    """Collect reports over HTTP, and serve the page on which respondents answer."""
    import asyncio

    _require_address(url)
    asked = _survey(survey)
    kept = _store(survey, asked, store)
    if host not in ("127.0.0.1", "::1", "localhost") and not (url or "").startswith("https://"):
        print(
            "warning: others can reach this; put TLS in front of it, and say --url https://...",
            file=sys.stderr,
        )
    try:
        asyncio.run(_serve(survey, asked, kept, store, host, port, url))
    except OSError as error:
        raise UsageError(f"Cannot listen on {host}:{port}: {error.strerror}.") from None
    finally:
        kept.close()


async def _serve(
    path: Path,
    survey: Survey,
    kept: ReportStore,
    store: Path | None,
    host: str,
    port: int,
    url: str | None,
) -> None:
    from discreet.local.collector.serve import listen
    from discreet.local.respondent.page import page, page_hash

    def estimate() -> dict[str, Any]:
        # a connection of its own, so that it does not delay commits
        with closing(_store(path, survey, store)) as reading:
            sums, suspicions = reading.examined()
            return _estimate_json(sums, suspicions)

    server, committing, address = await listen(
        kept, host=host, port=port, address=url, estimate=estimate
    )
    print(f"{survey.name} is open at {address}/ (estimates: {address}/estimate)")
    print(
        f"survey {survey.fingerprint}, page SHA-256 {page_hash(page(survey, collector=address))}",
        flush=True,
    )
    try:
        await server.serve_forever()
    finally:
        committing.cancel()


@collect.command()
def add(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[SURVEY] REPORTS...", help="Files of reports, with one report in each line."
        ),
    ],
    survey: Annotated[
        Path | None, typer.Option(help="The survey, if it is not the first argument.")
    ] = None,
    store: StoreFile = None,
    format: ReportFormat = Format.table,
) -> None:
    """Add reports from files. Adding a file twice changes nothing."""
    path, reports = _which(files, survey)
    kept = _store(path, _survey(path), store)
    totals: dict[str, Any] = {"accepted": 0, "repeated": 0, "refused": {}}
    for file in reports:
        try:
            lines = [line for line in file.read_bytes().split(b"\n") if line.strip()]
        except OSError:
            raise UsageError(f"{file} cannot be read.") from None
        for start in range(0, len(lines), 10_000):
            receipt = kept.accept(lines[start : start + 10_000])
            totals["accepted"] += receipt.accepted
            totals["repeated"] += receipt.repeated
            for reason, n in receipt.refused.items():
                totals["refused"][reason] = totals["refused"].get(reason, 0) + n
    if format is Format.json:
        print_json(totals)
    else:
        print(
            f"{totals['accepted']} reports added, {totals['repeated']} known already{_refusals(totals['refused'])}."
        )


def _which(files: list[Path], survey: Path | None) -> tuple[Path, list[Path]]:
    """Return the survey and the report files.

    The survey is given by --survey, or is the first argument, or the only one in this folder.
    """
    if survey is not None:
        return survey, files
    if files[0].suffix in (".yaml", ".yml"):
        return files[0], files[1:]
    nearby = sorted([*Path().glob("*.yaml"), *Path().glob("*.yml")])
    if len(nearby) != 1:
        raise UsageError(
            "Which survey do these reports answer? Write discreet collect add SURVEY REPORTS..."
        )
    return nearby[0], files


def _refusals(refused: dict[str, int]) -> str:
    listed = ", ".join(f"{n} {reason.replace('_', ' ')}" for reason, n in sorted(refused.items()))
    return f"; dropped: {listed}" if listed else ""


@collect.command()
def estimate(
    survey: SurveyFile,
    store: StoreFile = None,
    sums: Annotated[
        list[Path] | None,
        typer.Option(
            help="Add the sums of another collector: a file that `collect sums` printed; may be repeated."
        ),
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(help="Also write a page with charts to this file.")
    ] = None,
    format: ReportFormat = Format.table,
) -> None:
    """Estimate the respondents' true answers from the reports, with margins."""
    require_writable(chart)
    asked = _survey(survey)
    kept = _store(survey, asked, store)
    total, suspicions = kept.examined()
    for path in sums or ():
        total = total + _sums(asked, path)
    found = _estimate_json(total, suspicions)
    if chart is not None:
        from discreet.local.collector.chart import document

        write_file(chart, document(asked.name, found))
    if format is Format.json:
        print_json(found)
        return
    from discreet.local.collector.chart import text

    for line in text(found):
        print(line)
    print(
        f"reports dropped so far{_refusals(dict(total.refused)).removeprefix('; dropped') or ': none'}"
    )


def _estimate_json(sums: Sums, suspicions: dict[str, list[str]]) -> dict[str, Any]:
    found = sums.as_estimate_json()
    for key, sentences in suspicions.items():
        found[key]["suspicions"] = sentences
    return found


def _sums(survey: Survey, path: Path) -> Sums:
    from discreet.local.collector.collector import sums_from_json

    try:
        return sums_from_json(survey, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, json.JSONDecodeError, UnicodeDecodeError):
        raise UsageError(f"{path} cannot be read as sums.") from None


@collect.command("sums")
def print_sums(survey: SurveyFile, store: StoreFile = None) -> None:
    """Print this collector's sums as JSON. `collect estimate --sums` adds the sums of several
    collectors.
    """
    print_json(_store(survey, _survey(survey), store).sums().as_json())


@collect.command()
def status(
    survey: SurveyFile, store: StoreFile = None, format: ReportFormat = Format.table
) -> None:
    """Count the reports of each question, and the dropped reports by reason."""
    asked = _survey(survey)
    kept = _store(survey, asked, store)
    counts = kept.counts()
    if format is Format.json:
        print_json({"survey": asked.fingerprint, "reports": counts, "refused": kept.refused()})
        return
    for key, n in counts.items():
        print(f"{key}: {n} reports")
    print(f"dropped{_refusals(kept.refused()).removeprefix('; dropped') or ': none'}")


@collect.command("page")
def save_page(
    survey: SurveyFile,
    url: Annotated[str, typer.Option(help="The collector's address.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
) -> None:
    """Write the respondents' page to a file, and print its hash, which you can publish."""
    from discreet.local.respondent.page import page, page_hash

    require_writable(out)
    _require_address(url)
    content = page(_survey(survey), collector=url)
    write_file(out, content)
    print(f"{page_hash(content)}  {out}")


@collect.command("compile")
def compile_survey(survey: SurveyFile) -> None:
    """Print the compiled survey as JSON: with it a respondent's program needs no YAML library."""
    print(json.dumps(_survey(survey).as_json(), ensure_ascii=False, indent=1))
