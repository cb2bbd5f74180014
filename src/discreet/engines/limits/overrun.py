"""The one failure that is told apart from all others, because it is counted."""

from __future__ import annotations

from discreet.errors import EngineFailure


class Overrun(EngineFailure):
    """A question took more time or memory than the policy allows; said to nobody but counted
    (S13).
    """
