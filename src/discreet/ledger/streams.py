"""Streams: charges that are paid once, before their first step, and answered step by step (S15).

Each step is two rows. `freeze` stores the step's input, sealed, before any noise is drawn for it;
`publish` stores the step's output. The second process to do either gets the first one's bytes. So
after a crash between the two, the step resumes with the same input and, because draws are functions
of the charge's key, with the same noise. A published step is only ever recalled.

Inputs are sealed under a key derived from the charge's key, which is sealed under the ledger's key.
So a rotation of the ledger's key does not seal inputs again; and when the stream is posted and its
key erased, nobody can read the inputs any more.
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
    """A stream that was paid for. Its key is None after its last step was posted."""

    charge: int
    cost: Charge
    key: bytes | None = field(repr=False)
    frozen: int  # steps with a stored input
    published: int  # steps with a stored output


class Streams:
    """The streams of one ledger."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def find(self, question: str) -> StreamRecord | None:
        """Return the newest stream of a question, on any snapshot; None if there is none."""
        with self._journal.session(write=False) as balance:
            charge = None
            for number, steps in balance.streams.items():
                if steps.question == question:
                    charge = number
            if charge is None:
                return None
            steps = balance.streams[charge]
            return StreamRecord(
                charge=charge,
                cost=charge_from_row(self._journal.row(charge).body["cost"]),
                key=self._journal.unsealed(charge) if charge in balance.open else None,
                frozen=len(steps.frozen),
                published=len(steps.published),
            )

    def freeze(self, stream: StreamRecord, step: int, content: bytes) -> bytes:
        """Store the input of a step and return it; if it is stored already, return that one."""
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
        """Store the output of a step; only then may it leave.

        If another output is stored already, refuse this one.
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
        """Return the stored inputs of all steps so far, in order."""
        with self._journal.session(write=False) as balance:
            rows = balance.streams[stream.charge].frozen
            return [self._open(stream, step, row) for step, row in enumerate(rows)]

    def published(self, stream: StreamRecord) -> list[bytes]:
        """Return the published outputs of all steps so far, in order."""
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
