"""The lessons: one for each attack. A lesson takes a few seconds and needs no files."""

from __future__ import annotations

from collections.abc import Callable

from discreet.attacks.lessons import (
    census,
    difference,
    link,
    membership,
    reconstruct,
    records,
    scoreboard,
)
from discreet.attacks.lessons.lesson import Lesson

LESSONS: dict[str, Callable[..., Lesson]] = {
    "link": link.lesson,
    "scoreboard": scoreboard.lesson,
    "difference": difference.lesson,
    "reconstruct": reconstruct.lesson,
    "census": census.lesson,
    "membership": membership.lesson,
    "single-out": records.single_out_lesson,
    "linkability": records.linkability_lesson,
    "inference": records.inference_lesson,
}
