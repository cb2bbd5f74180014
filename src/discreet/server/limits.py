"""Limits of what clients may take of one server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of numbers, bytes and seconds.

    A message may have a statement of the length that the policy allows, and as many bytes of
    parameters.
    """

    workers: int = 4
    connections: int = 400
    connections_per_user: int = 100
    connections_before_login: int = 300
    connections_before_login_per_address: int = 150
    waiting_per_user: int = 100  # questions
    message: int = 1 << 20  # bytes
    result: int = 256 << 20  # bytes of one answer, and of all results that a session's cursors hold
    results: int = 1 << 30  # bytes of all answers that are being sent
    login: float = 20.0  # seconds for the whole login
    idle: float = 3600.0  # seconds without a statement
    sending: float = 60.0  # seconds that a client may leave sent bytes unread
    stopping: float = 30.0  # seconds for running questions to end when the server stops
