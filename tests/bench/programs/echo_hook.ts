/**
 * A hook of PicoClaw that answers every question with `continue`.
 *
 * @module
 */
import { linesOf } from "../../../middleware/foreign_hooks/picoclaw/rpc_hooks/lines.ts";

const encoder = new TextEncoder();
for await (const line of linesOf(Deno.stdin.readable.values())) {
  const { id } = JSON.parse(line);
  Deno.stdout.writeSync(encoder.encode(`{"jsonrpc":"2.0","id":${id},"result":{"action":"continue"}}\n`));
}
