"""The `discreet` command: verbs for curators, analysts, respondents and auditors.

Each family of verbs has a module with `register(app)`. Errors are one sentence on stderr, or one JSON object on stdout
with `--format json`; exit codes are those of `discreet.errors`; there is never a traceback.
"""

from __future__ import annotations

import codecs
import importlib
import io
import json
import logging
import sys

import typer

from discreet.errors import DiscreetError, EngineFailure, UsageError
from discreet.show import printable

app = typer.Typer(
    name="discreet",
    help="Statistics about people, and nothing about any one of them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

FAMILIES = ("demo", "curate", "question", "local", "synthetic", "release", "anonymity", "attack", "audit")

for _family in FAMILIES:
    importlib.import_module(f"discreet.cli.{_family}").register(app)


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit with its code."""
    _print_anything()
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def _print_anything() -> None:
    r"""Where the terminal has no ±, write \u00b1: no printing fails after the charge, and JSON stays what it is."""

    def escaped(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        return json.dumps(error.object[error.start : error.end])[1:-1], error.end

    codecs.register_error("discreet", escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="discreet")


def run(arguments: list[str]) -> int:
    """Run the command; the exit code says what happened."""
    logging.basicConfig(level=logging.ERROR, format="%(name)s: %(message)s")
    arguments = arguments or ["--help"]
    try:
        app(args=arguments, standalone_mode=False)
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort:
        return 130
    except typer.TyperException as error:
        return _told(UsageError(" ".join(error.format_message().split())), arguments)
    except DiscreetError as error:
        return _told(error, arguments)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        # Neither a traceback nor a message that may hold a value from the data reaches the caller.
        logging.getLogger("discreet").debug("%s", type(error).__name__, exc_info=error)
        return _told(EngineFailure(), arguments)
    return 0


def _told(error: DiscreetError, arguments: list[str]) -> int:
    if _wants_json(arguments):
        print(json.dumps({"error": error.as_json()}, ensure_ascii=False))
    else:
        print(printable(str(error)), file=sys.stderr)
    return error.exit_code


def _wants_json(arguments: list[str]) -> bool:
    pairs = zip(arguments, [*arguments[1:], ""], strict=False)
    return any((name == "--format" and value == "json") or name == "--format=json" for name, value in pairs)
