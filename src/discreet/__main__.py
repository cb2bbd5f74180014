"""python -m discreet, the same as the command `discreet`."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command. While it is imported, Ctrl-C ends the process without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from discreet.cli import main as run

    run()


if __name__ == "__main__":
    main()
