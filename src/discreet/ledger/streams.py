"""Streams: charges that are paid once, before their first step, and answered step by step (S15).

Each step is two rows. `freeze` stores what was read for the step, sealed, before any noise is drawn
for it; `publish` stores what leaves. Whoever comes second finds the first one's bytes. So a crash
between the two resumes with the same input and, because draws are functions of the charge's key,
the same noise; and a step that left is only ever recalled.

Inputs are sealed under a key made from the charge's own, which is itself sealed under the ledger's:
rotating the ledger's key needs no second copy, and when the stream is posted and its key erased,
nobody can read them any more.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from discreet.budget import Charge
from discreet.errors import LedgerUnavailable, UsageError
from discreet.ledger.chain import digest, fresh_secret
from discreet.ledger.journal import Journal
from discreet.ledger.terms import charge_from_row

_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRecord:
    """A stream that was paid for. Its key is None once it has come to its end and was posted."""

    charge: int
    cost: Charge
    key: bytes | None = field(repr=False)
    frozen: int  # how many steps have their input
    published: int  # how many have left


class Streams:
    """The streams of one ledger."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def find(self, question: str) -> StreamRecord | None:
        """Return the newest stream that was started for a question, on whatever snapshot."""
        with self._journal.session(write=False) as balance:
            found = [
                charge for charge, steps in balance.streams.items() if steps.question == question
            ]
            if not found:
                return None
            steps, waiting = balance.streams[found[-1]], found[-1] in balance.open
            return StreamRecord(
                charge=found[-1],
                cost=charge_from_row(self._journal.row(found[-1]).body["cost"]),
                key=self._journal.unsealed(found[-1]) if waiting else None,
                frozen=len(steps.frozen),
                published=len(steps.published),
            )

    def freeze(self, stream: StreamRecord, step: int, content: bytes) -> bytes:
        """Store what was read for a step; if somebody has done so already, theirs comes back and
        counts.
        """
        with self._journal.session(write=True) as balance:
            steps = balance.streams[stream.charge]
            if step < len(steps.frozen):
                return self._open(stream, step, steps.frozen[step])
            if step != len(steps.frozen) or step != len(steps.published):
                raise UsageError(
                    f"Step {step} is frozen after step {step - 1} was published, and once."
                )
            sealed = self._seal(stream, step, content)
            body = {
                "kind": "freeze",
                "charge": stream.charge,
                "step": step,
                "content": digest(sealed),
            }
            self._journal.file.keep_content(self._journal.append(body), sealed)
        return content

    def publish(self, stream: StreamRecord, step: int, answer: bytes) -> bytes:
        """Store what leaves at a step; after that it may leave. Other bytes than those stored are
        refused.
        """
        with self._journal.session(write=True) as balance:
            steps = balance.streams[stream.charge]
            if step < len(steps.published):
                stored = self._kept(steps.published[step])
                if digest(stored) != digest(answer):
                    raise LedgerUnavailable(
                        f"Step {step} of charge {stream.charge} has been published as something else: this must not "
                        "be released. Recall the stored one."
                    )
                return stored
            if step != len(steps.published) or step >= len(steps.frozen):
                raise UsageError(f"Step {step} is published once, after it was frozen.")
            body = {
                "kind": "step",
                "charge": stream.charge,
                "step": step,
                "content": digest(answer),
            }
            self._journal.file.keep_content(self._journal.append(body), answer)
        return answer

    def frozen(self, stream: StreamRecord) -> list[bytes]:
        """Return what was read for each step so far, in order."""
        with self._journal.session(write=False) as balance:
            rows = balance.streams[stream.charge].frozen
            return [self._open(stream, step, row) for step, row in enumerate(rows)]

    def published(self, stream: StreamRecord) -> list[bytes]:
        """Return what left at each step so far, in order."""
        with self._journal.session(write=False) as balance:
            return [self._kept(row) for row in balance.streams[stream.charge].published]

    def _kept(self, row: int) -> bytes:
        content = self._journal.file.content(row)
        if digest(content) != self._journal.row(row).body["content"]:
            raise self._change(row)
        return content

    def _seal(self, stream: StreamRecord, step: int, content: bytes) -> bytes:
        nonce = fresh_secret()[:_NONCE_BYTES]
        return nonce + self._cipher(stream).encrypt(nonce, content, _label(stream, step))

    def _open(self, stream: StreamRecord, step: int, row: int) -> bytes:
        sealed = self._kept(row)
        try:
            return self._cipher(stream).decrypt(
                sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _label(stream, step)
            )
        except InvalidTag:
            raise self._change(row) from None

    def _cipher(self, stream: StreamRecord) -> AESGCM:
        if stream.key is None:
            raise UsageError(
                "This stream has come to its end: what it read can no longer be opened."
            )
        return AESGCM(hmac.digest(stream.key, b"discreet stream inputs", "sha256"))

    def _change(self, row: int) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"What row {row} of {self._journal.path.name} stored is not what it holds now: restore the ledger from a "
            "backup (docs/ledger.md, Restore). Nothing is released."
        )


def _label(stream: StreamRecord, step: int) -> bytes:
    return f"{stream.charge} {step}".encode()
