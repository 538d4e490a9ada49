// Executes batches on a libSQL database with the real client, for programs outside, and prints its address. Ends when the standard input ends.
import { createClient } from "npm:@libsql/client@0.18.0";

const client = createClient({ url: `file:${Deno.args[0]}/libsql.db` });

async function execute(request) {
  const statements = await request.json();
  try {
    const replies = await client.batch(statements.map(([sql, ...args]) => ({ sql, args })), "write");
    return Response.json(replies.map(({ rows }) => rows));
  } catch (error) {
    return new Response(String(error), { status: 500 });
  }
}

const onListen = ({ port }) => console.log(`http://127.0.0.1:${port}`);
const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen }, execute);
for await (const _ of Deno.stdin.readable);
await server.shutdown();
Deno.exit();
