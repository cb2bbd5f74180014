import asyncio

import asyncpg
from told import BOUND, DATABASE, GROUPS, HOST, PASSWORD, PORT, ROWS, SLOW, USER, VALUE, begun, say


async def session() -> None:
    connection = await asyncpg.connect(
        host=HOST, port=PORT, user=USER, password=PASSWORD, database=DATABASE,
        server_settings={"discreet.epsilon": "0.25"},
    )  # fmt: skip
    tables = await connection.fetch(
        "SELECT relname FROM pg_class WHERE relkind = $1 AND oid > 16383", b"r"
    )
    first, again = (
        [tuple(row) for row in await connection.fetch(GROUPS)],
        await connection.fetch(GROUPS),
    )
    prepared = await connection.prepare(BOUND)
    bound = await prepared.fetch(VALUE)
    async with connection.transaction():
        paged = [tuple(row) async for row in connection.cursor(GROUPS, prefetch=1)]
    refused = cancelled = None
    try:
        await connection.fetch(ROWS)
    except asyncpg.PostgresError as error:
        refused = error.sqlstate
    waiting = asyncio.create_task(connection.fetch(SLOW))
    await asyncio.to_thread(begun)
    waiting.cancel()
    try:
        await waiting
    except asyncio.CancelledError:
        cancelled = "57014"
    after = await connection.fetch(SLOW)
    await connection.reset()
    await connection.close()
    say(
        tables=sorted(row["relname"] for row in tables), first=first, again=[tuple(row) for row in again], paged=paged,
        bound=[tuple(row) for row in bound], refused=refused, cancelled=cancelled,
        after=[tuple(row) for row in after],
    )  # fmt: skip


asyncio.run(session())
