"""The files in deploy/ name commands and options that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import typer

from discreet import cli

DEPLOY = Path(__file__).parent.parent.parent / "deploy"


def test_the_commands_of_unit_and_image_exist() -> None:
    unit = re.search(r"^ExecStart=(.*)$", (DEPLOY / "discreet.service").read_text(), re.MULTILINE)
    image = re.search(
        r"discreet \\\n#\s+(serve .*)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE
    )
    assert unit
    assert image
    for line in (unit[1].partition(" ")[2], image[1]):
        words = shlex.split(line)
        command = typer.main.get_command(cli.app())
        with command.make_context("discreet", words, resilient_parsing=True):
            assert words[0] == "serve"
        serve = command.commands["serve"]  # type: ignore[attr-defined]
        known = {option for parameter in serve.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known
