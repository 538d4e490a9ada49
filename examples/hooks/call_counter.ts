/**
 * Counts the calls of each run. The count is in the state of the run: parallel runs have separate counts, and a resumed run continues its count.
 *
 * ```sh
 * deno run examples/hooks/call_counter.ts
 * ```
 *
 * @module
 */
import { agent, type Event, type Middleware, state, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";

const count = state("callCounter.count", () => 0);

/** Counts the calls of a run, and emits the count at its end. */
export const callCounter: Middleware = {
  name: "callCounter",
  async tool(ctx, next) {
    const result = await next();
    count.update(ctx, (calls) => calls + 1);
    return result;
  },
  async prompt(ctx, next) {
    const answer = await next();
    ctx.emit({ type: "notice", text: `Calls: ${count.get(ctx)}` });
    return answer;
  },
};

const look = tool({
  name: "look",
  description: "Looks somewhere",
  input: z.object({ at: z.string() }),
  execute: ({ at }) => `Nothing at ${at}.`,
});

/** Runs an agent twice at the same time. Returns the notice of each run. */
export async function run(): Promise<string[]> {
  const model = scripted(
    { calls: [["look", { at: "home" }]] },
    { calls: [["look", { at: "home" }], ["look", { at: "work" }]] },
    "Nothing.",
    "Nothing.",
  );
  const assistant = agent({ model, tools: [look], use: [callCounter] });
  return await Promise.all([assistant.run("Look at home"), assistant.run("Look everywhere")].map(noticeOf));
}

async function noticeOf({ events }: { readonly events: AsyncIterable<Event> }): Promise<string> {
  for await (const event of events) if (event.type === "notice") return event.text;
  return "";
}

if (import.meta.main) console.log((await run()).join("\n"));
