"""The `discreet` command: verbs for curators, analysts, respondents and auditors.

Each family of verbs has a module with `register(app)`, imported when one of its verbs is typed.
Errors are one sentence on stderr, or one JSON object on stdout with `--format json`; exit codes are
those of `discreet.errors` and of docs/output.md; there is never a traceback.
"""

from __future__ import annotations

import atexit
import codecs
import contextlib
import gc
import importlib
import io
import json
import logging
import os
import signal
import sys
import threading
from typing import Annotated, Any, NoReturn

import typer

import discreet
from discreet.cli.printing.formats import print_json
from discreet.display.show import printable
from discreet.engines.limits.watch import interrupt_at_ctrl_c
from discreet.errors import DiscreetError, EngineFailure, UsageError
from discreet.extras import EXTRAS, missing

INTERRUPTED = 130  # by Ctrl-C, or at the end of what could be typed
READER_GONE = 141  # as if SIGPIPE had ended it: `discreet ... | head -1`

_interrupted = threading.Event()

FAMILIES = (  # where the commands are, in the order of the help
    *("start.demo", "start.init", "curate", "question", "local", "synthetic", "release"),
    *("publish", "anonymity", "attack", "audit", "parity", "user", "serve"),
    *("terminal.shell", "terminal.completion"),
)
HOMES = {  # the family of a verb that is typed often: the others need not be imported for it
    **dict.fromkeys(("ask", "quote", "explain"), "question"),
    **dict.fromkeys(("check", "snapshot", "ledger", "bounds"), "curate"),
    "demo": "start.demo",
    "init": "start.init",
    "release": "release",
    "publish": "publish",
}
# a command makes fewer before it ends: looking for circles among them frees nothing
_MANY_OBJECTS = 200_000


def app(verb: str | None = None) -> typer.Typer:
    """Return the command with all its verbs, or with a single one: to load all fifty takes a third
    of a question's time.
    """
    whole = typer.Typer(
        name="discreet",
        help="Statistics about people, and nothing about any one of them.",
        no_args_is_help=True,
        # `discreet completion` prints a script that starts no Python at every Tab
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    whole.callback()(_before_the_verb)
    families = FAMILIES if verb is None or verb not in HOMES else (HOMES[verb],)
    for family in families:
        importlib.import_module(f"discreet.cli.{family}").register(whole)
    commands = [
        each for each in whole.registered_commands if verb == (each.name or _call(each.callback))
    ]
    groups = [each for each in whole.registered_groups if each.name == verb]
    if verb != "completion" and (commands or groups):
        whole.registered_commands = commands
        whole.registered_groups = groups
    return whole


def _call(callback: object) -> str:
    return str(getattr(callback, "__name__", ""))


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"discreet {discreet.__version__}")
        raise typer.Exit


def _before_the_verb(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit with its code."""
    gc.set_threshold(_MANY_OBJECTS)
    outputs = [_watch("stdout"), _watch("stderr")]
    # Python's own, or that of `__main__` while this is imported; not one that ignores Ctrl-C
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_DFL):
        signal.signal(signal.SIGINT, _interrupt)
    interrupt_at_ctrl_c()
    code = run(sys.argv[1:] if arguments is None else arguments)
    _leave(_deliver(code, outputs))


def _leave(code: int) -> NoReturn:
    """End the process without freeing all its objects, which takes a fifth of a question's time.

    Nothing is lost: what was printed is flushed, what is registered for the end runs (it closes the
    ledger), and a charge was on disk before data was read. Where threads still work, Python ends as
    it does, and waits for them.
    """
    if any(
        not each.daemon for each in threading.enumerate() if each is not threading.main_thread()
    ):
        sys.exit(code)
    atexit._run_exitfuncs()
    os._exit(code)


class _Output(io.FileIO):
    """A stream to which a command prints. It remembers if a write failed."""

    failed: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.failed = error
            raise


def _watch(name: str) -> _Output:
    """Replace sys.stdout or sys.stderr by a stream of ours."""
    stream = getattr(sys, name)
    if stream is None:  # closed by the caller: `discreet ... >&-`
        output = _Output(os.devnull, "w")
        text = io.TextIOWrapper(io.BufferedWriter(output), encoding="utf-8")
    else:
        output = _Output(stream.fileno(), "w", closefd=False)
        lines = name == "stderr" or output.isatty()
        text = io.TextIOWrapper(
            io.BufferedWriter(output), encoding=stream.encoding, line_buffering=lines
        )
    setattr(sys, name, text)
    _print_anything(text)
    return output


def _interrupt(_number: int, _frame: object) -> None:
    """Note Ctrl-C before raising: an engine may make another error of it."""
    _interrupted.set()
    raise KeyboardInterrupt


def _print_anything(stream: io.TextIOWrapper) -> None:
    r"""Write \u00b1 where the terminal has no ±: no printing fails after the charge, and JSON stays
    JSON.
    """

    def escaped(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        return json.dumps(error.object[error.start : error.end])[1:-1], error.end

    codecs.register_error("discreet", escaped)
    stream.reconfigure(errors="discreet")


def run(arguments: list[str]) -> int:
    """Run the command, and return its exit code."""
    logging.basicConfig(level=logging.ERROR, format="%(name)s: %(message)s")
    arguments = arguments or ["--help"]
    try:
        # Not app(): typer would return the code of an Exit as if it were the command's result, make
        # 0 of Ctrl-C for whoever drops it, and 1 of a reader who went away.
        command = typer.main.get_command(app(arguments[0]))
        with command.make_context("discreet", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    except (typer.Abort, KeyboardInterrupt, EOFError):
        return INTERRUPTED
    except SystemExit:  # what rich makes of a reader who went away
        if _print_failure() is None:
            raise
        return 0
    except typer.TyperException as error:
        # `discreet attack` is `discreet attack --help`
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            return 0
        return _tell(UsageError(_wrong_call(error)), arguments)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        return _tell(missing(package) if package in EXTRAS else EngineFailure(), arguments)
    except DiscreetError as error:
        return INTERRUPTED if _interrupted.is_set() else _tell(with_names(error), arguments)
    except Exception as error:
        if _interrupted.is_set():
            return INTERRUPTED
        if _print_failure() is not None:
            return 0
        # Neither a traceback nor a message that may hold a value from the data reaches the caller.
        from discreet.engines.limits.until import place_of

        logging.getLogger("discreet").debug("%s at %s.", type(error).__name__, place_of(error))
        return _tell(EngineFailure(), arguments)
    return 0


def with_names(error: DiscreetError) -> DiscreetError:
    """Return the error, with a name that was meant if an analyst is unknown. Whoever runs a command
    here can read the policy; the doors of a server tell no names.
    """
    if not isinstance(error, UsageError) or not error.known:
        return error
    from discreet.policy.document import nearest

    return UsageError(f"{error} {nearest(error.unknown, error.known)}")


def _wrong_call(error: typer.TyperException) -> str:
    """Return what is wrong with the call on one line, and which help says what is right."""
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    stop = "" if message.endswith((".", "?", ")")) else "."
    return f"{message}{stop} See {context.command_path} --help."


def _tell(error: DiscreetError, arguments: list[str]) -> int:
    with contextlib.suppress(OSError):  # the code tells it where nobody reads any more
        if _wants_json(arguments):
            print_json({"error": error.as_json()})
        else:
            print(_in_red(printable(str(error))), file=sys.stderr)
    return error.exit_code


def _in_red(text: str) -> str:
    """Color an error if it goes to a terminal and NO_COLOR is not set."""
    wanted = (
        sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )
    return f"\x1b[31m{text}\x1b[0m" if wanted else text


def _wants_json(arguments: list[str]) -> bool:
    pairs = zip(arguments, [*arguments[1:], ""][: len(arguments)], strict=True)
    return any(
        (name == "--format" and value == "json") or name == "--format=json" for name, value in pairs
    )


def _print_failure() -> OSError | None:
    """Return the error of printing the result, if there was one; `_deliver` reports it."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.failed if isinstance(raw, _Output) else None


def _deliver(code: int, outputs: list[_Output]) -> int:
    """Flush the output; return the exit code, which is another one if the output was not delivered.

    A command that failed keeps its own code. Python flushes once more at its end. Then this must go
    to nothing, so that neither its message nor its code 120 replaces ours.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    problem = _print_failure()
    if isinstance(problem, BrokenPipeError):
        code = code or READER_GONE
    elif problem is not None:
        code = code or EngineFailure.exit_code
        with contextlib.suppress(OSError):
            print(f"The output could not be written: {problem.strerror}.", file=sys.stderr)
    for output in outputs:
        if output.failed is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
    return code
