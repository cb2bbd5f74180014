"""The ledger: the only place that spends. It is append-only, durable, and chained by MACs.

book      the ledger's operations: reserve, post, recall, amend, verify
balance   the sums of the rows, and the rules that each row must obey
chain     rows, their MACs, and keys
journal   one transaction on the chain: check new rows, read, append
streams   charges that are answered step by step
receipts  the values that go in and out
terms     what a ledger is bound to, and its limits
shortage  the refusal of a charge that does not fit
place     where a ledger is stored
head      the number and MAC of the last row
backup    back up, restore, and move to another store
turns     the group commit of threads on one connection
stores/   store (the protocol), sqlite (a file), postgres (shared tables), rights (their role)
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
