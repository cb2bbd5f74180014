"""The ledger, the only place that spends: append-only, durable, chained by MACs; reserve, post,
recall.

book      the ledger itself: what may be done with it
balance   what its rows add up to, and whether each follows from those before
chain     rows, MACs, keys
streams   charges that are answered step by step
receipts  what goes in and out
place     where a ledger is; head, how far it is
store     what a store does; stores, which there are
sqlite    the file; the only module that knows SQLite
postgres  the tables that servers share; turns, their group commit; rights, their role
backup    copies, and moves from one store to another
terms     what a ledger is bound to, and its limits
"""

from discreet.ledger.balance import PaidPart
from discreet.ledger.book import Ledger
from discreet.ledger.receipts import Bill, Entry, Reservation, Standing, StoredAnswer, StoredPart
from discreet.ledger.streams import StreamRecord, Streams
from discreet.ledger.terms import CURATOR, Terms

__all__ = [
    "CURATOR",
    "Bill",
    "Entry",
    "Ledger",
    "PaidPart",
    "Reservation",
    "Standing",
    "StoredAnswer",
    "StoredPart",
    "StreamRecord",
    "Streams",
    "Terms",
]
