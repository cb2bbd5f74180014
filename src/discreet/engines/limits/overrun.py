"""Overrun: the failure of a question that took too much. Only this failure is counted."""

from __future__ import annotations

from discreet.errors import EngineFailure


class Overrun(EngineFailure):
    """A question took more time or memory than the policy allows.

    It is counted (S13). The analyst sees the same sentence as for every EngineFailure.
    """
