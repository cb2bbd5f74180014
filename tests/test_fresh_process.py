"""A process that asks one question and nothing before it: what it needs, it imports itself.

Other tests share a process, in which somebody has imported everything already.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from discreet.binding import create_ledger
from discreet.examples import town
from discreet.policy.policy import Policy

QUESTIONS = (
    "SELECT SUM(income), AVG(income) FROM people",
    "SELECT clinic, AVG(cost) FROM visits GROUP BY clinic",
    "SELECT sex, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () FROM people GROUP BY sex",
    "SELECT CORR(age, income) FROM people",
    "SELECT MEDIAN(age), MIN(age), MAX(age) FROM people",
    "SELECT zip, COUNT(*) FROM people GROUP BY zip",
    "SELECT month(born), COUNT(*) FROM people GROUP BY ALL HAVING COUNT(*) > 10 ORDER BY 2 LIMIT 3",
    "SELECT DATE_TRUNC('month', seen) AS m, SUM(COUNT(*)) OVER (ORDER BY m) FROM visits GROUP BY m",
    "SELECT MAX(day) FROM visits",
    "SELECT s.region, COUNT(*) FROM people p JOIN states s ON p.state = s.state GROUP BY ALL",
    "SELECT * FROM people LIMIT 0",
    "SELECT * FROM states LIMIT 3",
)
# Each question is asked by a copy of a process that has imported the package and nothing else.
SCRIPT = """
import os, sys
import discreet
for question in sys.stdin.read().splitlines():
    child = os.fork()
    if child == 0:
        try:
            discreet.open(sys.argv[1]).ask(question, analyst="alice", epsilon=0.05)
            print("answered")
        except Exception as error:
            print(question, type(error).__name__, error, sep=": ")
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_the_first_question_of_a_process_is_answered(tmp_path: Path) -> None:
    policy = town.build(tmp_path / "town", people=200)
    create_ledger(Policy.read(policy))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(policy)],
        input="\n".join(QUESTIONS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["answered"] * len(QUESTIONS), done.stdout + done.stderr
