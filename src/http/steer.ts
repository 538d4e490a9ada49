/**
 * What a client says to a run while it runs.
 *
 * @module
 */
import type { Context } from "hono";
import type { LiveRun } from "../session/record/host.ts";
import { bodyOf, messageBody } from "./body.ts";
import { callerOf } from "./caller.ts";
import { Refusal } from "./refusal.ts";
import type { Served } from "./served.ts";

/** Says something to a run. */
export async function sendMessage(c: Context, served: Served): Promise<Response> {
  const { run, id } = await runningOf(c, served, "send a message to");
  const { after, ...said } = await bodyOf(c, messageBody, served.how.maxBody);
  try {
    await run.send(
      { role: "user", parts: "text" in said ? [{ type: "text", text: said.text }] : said.parts },
      after && { after },
    );
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new Refusal(409, "full", `Cannot send a message to run "${id}": too many wait`);
  }
  return c.body(null, 202);
}

/** Has a run end with one more answer. */
export async function finishRun(c: Context, served: Served): Promise<Response> {
  const { run } = await runningOf(c, served, "finish");
  run.finish();
  return c.body(null, 204);
}

/** The run that a request is about, which has to run here. */
async function runningOf(
  c: Context,
  { how, runs }: Served,
  what: string,
): Promise<{ readonly run: LiveRun; readonly id: string }> {
  const caller = await callerOf(c, how);
  const id = c.req.param("id") ?? "";
  const run = runs.get(id, caller);
  if (!run) throw new Refusal(404, "unknown", `Cannot ${what} run "${id}": it does not run here`);
  return { run, id };
}
