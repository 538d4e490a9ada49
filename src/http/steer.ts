/**
 * What a client says to a run while it runs.
 *
 * @module
 */
import type { Context } from "hono";
import type { UserMessage } from "../protocol/message.ts";
import { bodyOf, messageBody } from "./body.ts";
import { callerOf } from "./caller.ts";
import { Refusal } from "./refusal.ts";
import type { Served } from "./served.ts";

/** Says something to a run, wherever it runs. */
export async function sendMessage(c: Context, { how, runs }: Served): Promise<Response> {
  const caller = await callerOf(c, how);
  const id = c.req.param("id") ?? "";
  const { after, ...said } = await bodyOf(c, messageBody, how.maxBody);
  const message: UserMessage = {
    role: "user",
    parts: "text" in said ? [{ type: "text", text: said.text }] : said.parts,
  };
  const when = after && { after };
  const here = runs.get(id, caller);
  const sent = here
    ? await here.send(message, when).then(() => true, fullness)
    : await runs.records?.post(id, { type: "message", message, ...when }, caller);
  if (sent === undefined) throw over("send a message to", id);
  if (!sent) throw new Refusal(409, "full", `Cannot send a message to run "${id}": too many wait`);
  return c.body(null, 202);
}

/** Has a run end with one more answer, wherever it runs. */
export async function finishRun(c: Context, { how, runs }: Served): Promise<Response> {
  const caller = await callerOf(c, how);
  const id = c.req.param("id") ?? "";
  const here = runs.get(id, caller);
  here?.finish();
  if (!here && !await runs.records?.post(id, { type: "finish" }, caller)) throw over("finish", id);
  return c.body(null, 204);
}

/** False where too many messages wait. */
function fullness(error: unknown): false {
  if (error instanceof RangeError) return false;
  throw error;
}

function over(what: string, id: string): Refusal {
  return new Refusal(404, "unknown", `Cannot ${what} run "${id}": it does not run`);
}
