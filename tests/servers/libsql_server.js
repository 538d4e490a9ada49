// Executes batches on a libSQL database in a folder with the real client, for a program that listens on a port. Ends when that closes the connection.
import { createClient } from "npm:@libsql/client@0.18.0";
import { answerBatches } from "./batch_socket.ts";

const [folder, port] = Deno.args;
const client = createClient({ url: `file:${folder}/libsql.db` });
await client.execute("PRAGMA journal_mode = WAL");
await client.execute("PRAGMA synchronous = OFF"); // the database is not needed after a crash
const socket = await Deno.connect({ hostname: "127.0.0.1", port: Number(port) });
socket.setNoDelay();
await answerBatches(socket, async (statements) => {
  const replies = await client.batch(statements.map(([sql, ...args]) => ({ sql, args })), "write");
  return replies.map(({ rows }) => rows);
});
Deno.exit();
