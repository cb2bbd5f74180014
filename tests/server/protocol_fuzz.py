"""Sessions of real clients, mutated: flipped bits, cut and stretched messages, other types, other
orders.

Each round is one connection: a login, some messages of which some are mutated, and then the client
stops writing and reads until the server has closed. Whatever it sends, the server says a proper
message or closes; it never fails inside, and never stops answering others.
"""

from __future__ import annotations

import random
import socket
import struct
from collections import Counter
from collections.abc import Sequence

from server.running_server import Running
from server.wire_client import (
    FLUSH,
    SYNC,
    Client,
    bind,
    close,
    describe,
    execute,
    pack,
    parse,
    text,
)

QUESTIONS = (
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
    "SELECT COUNT(*) AS n FROM people WHERE age > $1",
    "SELECT zip FROM people",
    "SELECT relname FROM pg_catalog.pg_class WHERE relname = $1",
    "BEGIN; SELECT COUNT(*) AS n FROM people; ROLLBACK",
    "SET discreet.epsilon = 0.001; SHOW ALL",
    "COPY (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) TO STDOUT (FORMAT BINARY)",
    "BEGIN; DECLARE c CURSOR FOR SELECT COUNT(*) AS n FROM people; FETCH 1 FROM c; CLOSE c; COMMIT",
    "PREPARE p AS SELECT COUNT(*) AS n FROM people WHERE age > $1; EXECUTE p(40); DEALLOCATE p",
    "EXPLAIN SELECT COUNT(*) AS n FROM people",
    "SAVEPOINT a; RELEASE a; DISCARD ALL; RESET ALL; SELECT 1",
)
WHOLE = set("RSKTDCENZnstI123HdcvWVA")  # every type of message that the server may send


def recorded(dice: random.Random) -> list[bytes]:
    """One exchange, as some client would send it."""
    sql = dice.choice(QUESTIONS)
    if "$1" in sql and ";" not in sql:
        value = dice.choice([b"40", struct.pack("!q", 40), b"people", None, b""])
        name = dice.choice(["", "s"])
        return [
            parse(sql, name=name),
            describe("S", name),
            bind(
                [value],
                statement=name,
                formats=dice.choice([[], [0], [1]]),
                results=dice.choice([[], [1]]),
            ),
            describe("P"),
            execute(rows=dice.choice([0, 1, 100])),
            close("S", name),
            dice.choice([SYNC, FLUSH]),
        ]
    return [pack(b"Q", text(sql)), SYNC]


def mutated(message: bytes, dice: random.Random) -> bytes:
    """The message with one thing wrong, or nothing."""
    data = bytearray(message)
    match dice.randrange(10):
        case 0:
            place = dice.randrange(len(data))
            data[place] ^= 1 << dice.randrange(8)
        case 1:
            return bytes(data[: dice.randrange(len(data))])
        case 2:
            data[1:5] = struct.pack(
                "!I", dice.choice([0, 3, 4, 5, len(data) + 7, 2**16, 2**31, 2**32 - 1])
            )
        case 3:
            data[0] = dice.choice(b"QPBDECSHXFdcfp\0\xff?")
        case 4:
            place = dice.randrange(5, len(data) + 1)
            body = data[5:place] + dice.randbytes(dice.randrange(1, 20)) + data[place:]
            return pack(bytes(data[:1]), bytes(body))
        case 5:
            place = dice.randrange(5, len(data) + 1)
            return pack(bytes(data[:1]), bytes(data[5:place]))
        case 6:
            words = bytes(data[5:]).split(b" ")
            dice.shuffle(words)
            return pack(bytes(data[:1]), b" ".join(words))
        case 7:
            return bytes(data) * 2
    return bytes(data)


def startup(dice: random.Random) -> bytes:
    body = text("user") + text("alice") + text("database") + text("town") + b"\0"
    data = bytearray(
        struct.pack("!II", len(body) + 8, dice.choice([3 << 16, 80877103, 80877102, 0, 2**32 - 1]))
        + body
    )
    for _ in range(dice.randrange(3)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data) + dice.randbytes(dice.randrange(40))


def play(town: Running, messages: int, dice: random.Random) -> Counter[str]:
    """Send so many messages; what came back, counted by type."""
    heard: Counter[str] = Counter()
    sent = 0
    while sent < messages:
        if dice.random() < 0.15:
            with socket.create_connection(("127.0.0.1", town.port), timeout=60) as raw:
                raw.sendall(startup(dice))
                raw.shutdown(socket.SHUT_WR)
                while raw.recv(65536):
                    pass
            sent += 1
            continue
        batch = [each for _ in range(dice.randrange(1, 6)) for each in recorded(dice)]
        chaos = [mutated(each, dice) if dice.random() < 0.4 else each for each in batch]
        sent += len(chaos)
        heard += _converse(town, chaos)
    return heard


def _converse(town: Running, messages: Sequence[bytes]) -> Counter[str]:
    with Client(town.port, options="-c discreet.epsilon=0.001") as client:
        assert client.reply.status == "I", client.reply
        heard: Counter[str] = Counter()
        try:
            client.send(*messages)
            client.socket.shutdown(socket.SHUT_WR)
            while True:
                kind, _ = client.message()
                assert kind.decode("latin-1") in WHOLE, kind
                heard[kind.decode()] += 1
        except (EOFError, ConnectionError):
            return heard
