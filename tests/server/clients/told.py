"""What every script of a client is told, and how it says what it saw. Standard library only."""

import json
import os
import sys
import threading
import time

TOLD = json.loads(os.environ["DISCREET_SESSION"])
HOST, PORT, USER, PASSWORD = TOLD["host"], TOLD["port"], TOLD["user"], TOLD["password"]
DATABASE = "town"
OPTIONS = "-c discreet.epsilon=0.25"
URL = f"{USER}:{PASSWORD.replace(' ', '%20')}@{HOST}:{PORT}/{DATABASE}"
GROUPS, BOUND, VALUE, SLOW, ROWS = (
    TOLD[key] for key in ("groups", "bound", "value", "slow", "rows")
)
_BEGUN = TOLD["begun"]


def begun() -> None:
    """Wait until the server has begun with the question that is to be cancelled."""
    end = time.monotonic() + 60
    while not os.path.exists(_BEGUN):
        if time.monotonic() > end:
            raise TimeoutError("the slow question did not begin")
        time.sleep(0.01)


def cancelling(cancel) -> threading.Thread:
    """Call `cancel` once the slow question runs."""

    def wait_and_cancel() -> None:
        begun()
        cancel()

    thread = threading.Thread(target=wait_and_cancel)
    thread.start()
    return thread


def plain(value):
    return [plain(each) for each in value] if isinstance(value, list | tuple) else str(value)


def say(**seen) -> None:
    json.dump({name: plain(value) for name, value in seen.items()}, sys.stdout)
