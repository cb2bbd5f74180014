// Node's pg: by the simple protocol, by prepared statements, and cancelling by a second connection.
const { existsSync } = require("fs");
const { Client } = require("pg");
const told = JSON.parse(process.env.DISCREET_SESSION);
const address = { host: told.host, port: told.port, user: told.user, password: told.password, database: "town" };
const plain = (rows) => rows.map((row) => Object.values(row).map(String));

async function session() {
  const client = new Client({ ...address, options: "-c discreet.epsilon=0.25" });
  await client.connect();
  const ask = async (...query) => plain((await client.query(...query)).rows);
  const tables = (
    await client.query("SELECT table_name FROM information_schema.tables WHERE table_schema = $1 ORDER BY 1", ["public"])
  ).rows.map((row) => row.table_name);
  const first = await ask(told.groups);
  const again = await ask({ name: "groups", text: told.groups });
  const bound = await ask(told.bound, [told.value]);
  let refused, cancelled;
  await client.query(told.rows).catch((error) => (refused = error.code));
  const waiting = client.query(told.slow).catch((error) => (cancelled = error.code));
  const end = Date.now() + 60000;
  while (!existsSync(told.begun) && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 10));
  // pg has no call of its own for this: a second connection says it with the key of the first.
  await new Promise((resolve, reject) => {
    const socket = require("net").connect(told.port, told.host, () => {
      const message = Buffer.alloc(16);
      [16, 80877102, client.processID, client.secretKey].forEach((word, n) => message.writeInt32BE(word, 4 * n));
      socket.end(message);
    });
    socket.on("close", resolve).on("error", reject).resume();
  });
  await waiting;
  const after = await ask(told.slow);
  await client.end();
  process.stdout.write(JSON.stringify({ tables, first, again, bound, refused, cancelled, after }));
}

session().catch((error) => {
  console.error(error);
  process.exit(1);
});
