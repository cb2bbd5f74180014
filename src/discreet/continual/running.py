"""Run a release from its start to its last period: charge once, then for each period freeze the new
rows, add noise and publish.

quote   return what starting it would cost, and its margins; free
start   plan, choose a strategy, charge for the whole horizon: one row in the ledger
run     for every period that is over: read the rows that have arrived, freeze them, add noise,
publish show    return what has been published so far; reads no data
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.accounting import Accountant
from discreet.budget import Charge
from discreet.continual.design import Design, design_release
from discreet.continual.question import PeriodQuestion
from discreet.continual.quote import LONG, Line, ReleaseQuote
from discreet.continual.series import Series, rows_to_publish
from discreet.continual.strategies.strategy import Windows
from discreet.engines.duckdb.preparing.arrivals import Arrivals, pack, unpack
from discreet.engines.limits.until import Until
from discreet.errors import LedgerUnavailable, PolicyError, Unproved, UsageError
from discreet.ledger import Ledger, Reservation, StreamRecord
from discreet.mechanisms import to_row
from discreet.policy.policy import CURATOR, Policy
from discreet.policy.schedule import Schedule
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact
from discreet.vault.steps import Steps

FIRST = 1  # step 0 is the design; period p is step p + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One schedule of a policy."""

    policy: Policy
    schedule: Schedule
    asked: PeriodQuestion
    accountant: Accountant
    ledger: Ledger
    pay: Callable[..., object]  # the door's: charges the curator for all steps
    allow: Callable[[bytes, Accountant, Charge], Allowance]  # the door's too
    source: object  # where rows arrive

    @property
    def identity(self) -> str:
        """Return what tells this stream from others: the schedule, what its question means, and the
        policy's tables.
        """
        told = [self.schedule.meaning(), self.asked.canonical, self.policy.digest]
        return "release " + hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    def quote(self) -> ReleaseQuote:
        """Return the cost of starting it, and its margins in every period. Free; touches no
        data.
        """
        design = self._design()
        periods = self.schedule.periods or LONG
        covering = design.covering(periods) if self.schedule.periods is None else design
        lines = []
        for publish in self.schedule.publish:
            for each in self.asked.statistics:
                # a window begins where it is full
                first = publish - 1 if isinstance(publish, int) else 0
                margins = tuple(covering.margins(each, publish, first=min(first, periods - 1)))
                lines.append(Line(publish=str(publish), statistic=each.name, margins=margins))
        return ReleaseQuote(
            release=self.schedule.name,
            strategy=design.strategy.name,
            periods=self.schedule.periods,
            cost=self.accountant.budget(
                self.accountant.price(each.loss() for each in design.mechanisms)
            ),
            left=self.accountant.left(self.ledger.left(CURATOR)),
            lines=tuple(lines),
        )

    def start(self) -> Series:
        """Charge for the whole horizon, once. Starting it again changes nothing."""
        stream = self.ledger.streams.find(self.identity)
        if stream is None or not stream.published:
            design = self._design()
            rows = [to_row(each) for each in design.mechanisms]
            if stream is None:
                self.pay(
                    question=self.identity,
                    mechanisms=design.mechanisms,
                    cost=self.accountant.price(each.loss() for each in design.mechanisms),
                    text=f"release {self.schedule.name}: {self.schedule.question}",
                )
                stream = self.ledger.streams.find(self.identity)
            assert stream is not None  # it was just paid for
            charged = next(row for row in self.ledger.rows() if row["number"] == stream.charge)
            # a start that died, under another version of discreet
            if charged["mechanisms"] != rows:
                raise LedgerUnavailable(
                    f"Charge {stream.charge} was made for other noise: change the schedule, and start."
                )
            self.ledger.streams.freeze(stream, 0, b"")
            self.ledger.streams.publish(stream, 0, design.to_bytes())
        return self.show()

    def run(self, as_of: date | datetime | None = None) -> Series:
        """Publish every period that has ended and was not published yet."""
        stream = self._require_start()
        due = self.schedule.due(_moment(as_of))
        if stream.published - FIRST < due and stream.key is not None:
            # Privacy: S22. What the curator can mend is said; all else, of whatever type, is one
            # fixed sentence.
            Until(began=0.0, deadline=None).leave(
                partial(self._publish, stream, due),
                count=lambda: None,  # the curator runs it, and has no limit of overruns
                passing=(LedgerUnavailable, PolicyError, Unproved, UsageError),
            )
        return self.show()

    def show(self) -> Series:
        """Return what has been published so far."""
        stream = self._require_start()
        design, *steps = self.ledger.streams.published(stream)
        tables = [_table(content) for content in steps]
        return Series(
            schedule=self.schedule,
            design=Design.from_bytes(design),
            asked=self.asked,
            accountant=self.accountant,
            cost=stream.cost,
            noisy=tuple(map(_noisy, steps)),
            table=pa.concat_tables(tables)
            if tables
            else rows_to_publish(self.schedule, self.asked, None, [], []),
        )

    def _design(self) -> Design:
        amount = self.accountant.allot(epsilon=self.schedule.epsilon)
        neighbors = self.policy.neighbors
        return design_release(
            self.schedule, self.asked, self.accountant, neighbors=neighbors, amount=amount
        )

    def _require_start(self) -> StreamRecord:
        stream = self.ledger.streams.find(self.identity)
        if stream is None or not stream.published:
            raise UsageError(
                f"The release {self.schedule.name} has not been started as the policy has it now: run discreet release "
                f"start. It charges ε = {self.schedule.epsilon} once."
            )
        return stream

    def _publish(self, stream: StreamRecord, due: int) -> None:
        streams, asked = self.ledger.streams, self.asked
        assert stream.key is not None
        stored = streams.published(stream)
        started = Design.from_bytes(stored[0])
        design = started.covering(due)
        allowance = self.allow(stream.key, self.accountant, stream.cost)
        moved = started.moved(self.schedule, asked, self.policy.neighbors)
        block = asked.block
        forms = [each.over(block.readings) for each in block.own_statistics]
        measurements = [
            allowance.steps(
                mechanism, design.strategy.encoder(), moved=far, sizes=block.sizes, forms=each
            )
            for mechanism, far, each in zip(design.mechanisms, moved, forms, strict=True)
        ]
        estimates = _Estimates(self.schedule, asked, design, first=len(stored) - FIRST)
        frozen = [unpack(content) for content in streams.frozen(stream)[FIRST:]]
        # a period that was frozen and not published is the next to be published
        left_before = stored[FIRST:]
        for (exact, *_), left in zip(frozen[: len(left_before)], left_before, strict=True):
            for steps in measurements:
                steps.skip(Exact(exact))
            estimates.skip(_noisy(left))
        order = hmac.digest(stream.key, b"discreet order of arrival", "sha256")
        with Arrivals(self.policy, self.source, self.schedule, asked.table, key=order) as arrivals:
            arrivals.remember(frozen)
            for period in range(len(stored) - FIRST, due):
                if period == len(frozen):
                    content = arrivals.step(period, [asked.block.sums])
                    if streams.freeze(stream, period + FIRST, content) != content:
                        # Privacy: whoever froze it has counted other people than `arrivals`
                        # remembers from here on.
                        raise LedgerUnavailable(
                            f"Another run of {self.schedule.name} is at work: run again after it."
                        )
                    frozen.append(unpack(content))
                noisy = _release(measurements, Exact(frozen[period][0]))
                streams.publish(stream, period + FIRST, _pack(noisy, estimates.add(noisy)))
        if self.schedule.periods == due:
            self.ledger.post(
                Reservation(id=stream.charge, key=stream.key, resumed=True),
                b"all periods are published",
            )


class _Estimates:
    """Computes the published values from noisy rows, period by period, and from nothing else."""

    def __init__(
        self, schedule: Schedule, asked: PeriodQuestion, design: Design, *, first: int
    ) -> None:
        self._schedule = schedule
        self._asked = asked
        self._decoders = [design.strategy.decoder() for _ in design.mechanisms]
        self._sums = [{each: Windows(each) for each in schedule.publish} for _ in design.mechanisms]
        self._margins = {
            (each.name, publish): design.margins(each, publish, first=first)
            for each in asked.statistics
            for publish in schedule.publish
        }
        self._period = 0
        self._first = first

    def skip(self, noisy: list[list[list[int]]]) -> dict[Any, Any]:
        """Return the sums of the next period, by measurement and kind."""
        found = {}
        for index, (decoder, rows) in enumerate(zip(self._decoders, noisy, strict=True)):
            daily, cumulative = decoder.add(np.array(rows, dtype=np.float64))
            for publish, window in self._sums[index].items():
                found[index, publish] = window.add(daily, cumulative)
        self._period += 1
        return found

    def add(self, noisy: list[list[list[int]]]) -> pa.Table:
        """Return the rows that are published for the next period."""
        found = self.skip(noisy)
        values, margins = [], []
        for publish in self._schedule.publish:
            for each in self._asked.statistics:
                parts = found[each.measurement, publish].reshape(len(each.factors), -1)
                values.append(
                    np.array([float(factor * each.step) for factor in each.factors]) @ parts
                )
                margins.append(self._margins[each.name, publish][self._period - 1 - self._first])
        return rows_to_publish(self._schedule, self._asked, self._period - 1, values, margins)


def _release(measurements: list[Steps], exact: Exact) -> list[list[list[int]]]:
    return [
        [[int(each) for each in row] for row in steps.release(exact)[0]] for steps in measurements
    ]


def _pack(noisy: list[list[list[int]]], table: pa.Table) -> bytes:
    told = json.dumps(noisy, separators=(",", ":")).encode()
    return len(told).to_bytes(8, "little") + told + pack([table])


def _head(content: bytes) -> int:
    return int.from_bytes(content[:8], "little")


def _noisy(content: bytes) -> list[list[list[int]]]:
    found: list[list[list[int]]] = json.loads(content[8 : 8 + _head(content)])
    return found


def _table(content: bytes) -> pa.Table:
    return unpack(content[8 + _head(content) :])[0]


def _moment(as_of: date | datetime | None) -> datetime:
    if as_of is None:
        return datetime.now(UTC).replace(tzinfo=None)
    if not isinstance(as_of, date):
        raise UsageError(f"as_of must be a date or a datetime, not {type(as_of).__name__}.")
    if not isinstance(as_of, datetime):
        return datetime(as_of.year, as_of.month, as_of.day)
    if as_of.utcoffset() is not None:
        raise UsageError(
            "as_of has a time zone, and the times of rows have none. Write it in UTC, without a zone."
        )
    return as_of
