/**
 * Attacks with load: owners who send long prompts, leave runs paused, and do not read, against a store that is small.
 *
 * @module
 */
import { agent, memory, type Model, type ModelEvent, serve, type Store, textOf, tool } from "@jizai/jizai";
import * as z from "zod";
import { journalKey } from "../../src/core/journal.ts";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

const maxBytes = 1_000_000;

/** A model that calls `pay` if the prompt begins with "Pay", and otherwise repeats a text as long as the prompt. */
const model: Model = {
  id: "loaded",
  async *stream({ messages }) {
    await Promise.resolve();
    const last = messages.at(-1);
    const text = last?.role === "user" ? textOf(last) : "";
    if (text.startsWith("Pay")) {
      const id = `c${messages.length}`;
      const call: ModelEvent[] = [{ type: "call.start", id, name: "pay" }, { type: "call.delta", id, text: "{}" }];
      yield [...call, { type: "call.end", id }, { type: "finish", reason: "calls" }];
    } else yield [{ type: "text", text: `Yes. ${text.slice(0, 20_000)}` }, { type: "finish", reason: "stop" }];
  },
};

/** A server with small bounds, and the owners for whom a payment was made. */
function target() {
  const paid: string[] = [];
  const pay = tool({
    name: "pay",
    description: "Pays",
    input: z.object({}),
    ask: true,
    execute(_, { run }) {
      paid.push(run.id);
      return "Paid.";
    },
  });
  const store = memory({ maxBytes });
  const failures: unknown[] = [];
  const app = serve(agent({ model, tools: [pay] }), {
    store,
    owner: (c) => c.req.header("x-user") ?? "",
    onError: (error) => failures.push(error),
  });
  const send = (owner: string, path: string, body: unknown, key?: string) =>
    app.request(path, {
      method: "POST",
      headers: { "x-user": owner, "content-type": "application/json", ...(key && { "idempotency-key": key }) },
      body: JSON.stringify(body),
    });
  return { store, paid, send, failures };
}

/** Reads a response in one of several ways. */
async function consume(response: Response, { below }: Chance): Promise<string> {
  if (below(4) > 0) return await response.text();
  await response.body?.cancel();
  return "";
}

function runIn(text: string): string {
  return /"run":"([^"]+)"/.exec(text)?.[1] ?? "";
}

/**
 * The clients of one attempt. "few": two owners, who cannot fill the store, because an owner may have a quarter of it. "many": guests, who fill it.
 */
const crowds = {
  few: (chance: Chance) => chance.one(["bob", "bob", "eve"]),
  many: (chance: Chance) => `guest ${chance.below(40)}`,
} as const;

/** Returns the sessions of some owners, with their runs and the bytes of their journals. */
async function storedBy(owners: Iterable<string>, { journal, list, load }: Store) {
  const named = await Promise.all(Array.from(owners, async (owner) => {
    return (await list({ owner, limit: 1_000 })).map((id) => ({ owner, id }));
  }));
  return await Promise.all(
    named.flat().map(async ({ owner, id }) => {
      const key = journalKey(owner, id);
      const { head = "", last = 0 } = await journal.head(key) ?? {};
      const entries = await journal.entries(key, 1, last);
      const bytes = 2 * entries.reduce((sum, [, entry]) => sum + JSON.stringify(entry).length, head.length);
      return { owner, bytes, run: (await load(id, { owner }))?.run?.id };
    }),
  );
}

/** Loads a server. Fails if a bound is exceeded, or if a paused run is lost, or its key or its answer because of other owners. */
export const load: Attack = {
  name: "load",
  async attempt(chance) {
    const { below, one } = chance;
    const { store, paid, send, failures } = target();
    const crowd = one(["few", "many"] as const);
    const paused = new Set<string>();
    const owners = new Set(["ada"]);
    const begun = await (await send("ada", "/runs", { prompt: "Pay it" }, "key")).text();
    const run = runIn(begun);
    const session = /"session":"([^"]+)"/.exec(begun)?.[1] ?? "";
    const callId = /"callId":"([^"]+)"/.exec(begun)?.[1] ?? "";
    const count = 30;
    for (let sent = 0; sent < count; sent++) {
      const owner = crowds[crowd](chance);
      const prompt = `${one(["Pay", "Hi"])} ${"x".repeat(below(one([2_000, 40_000, 200_000])))}`;
      const response = await send(owner, "/runs", { prompt }, below(3) === 0 ? `k${below(5)}` : undefined);
      const { status } = response;
      const text = await consume(response, chance);
      expect([200, 409, 503].includes(status), () => `a prompt was answered with ${status} ${text} ${failures}`);
      if (text.includes('"run.paused"')) paused.add(runIn(text));
      owners.add(owner);
      const stored = await storedBy(owners, store);
      const bytesOf = (journals: typeof stored) => journals.reduce((sum, { bytes }) => sum + bytes, 0);
      const [bytes, own] = [bytesOf(stored), bytesOf(stored.filter((each) => each.owner === owner))];
      expect(own <= maxBytes / 4, () => `the store holds ${own} bytes of ${owner}`);
      expect(bytes > 0 && bytes <= maxBytes, () => `the store holds ${bytes} bytes`);
    }
    const stored = await storedBy(owners, store);
    const lost = [...paused].filter((run) => !stored.some((each) => each.run === run));
    expect(lost.length === 0, () => `${lost.length} of ${paused.size} paused runs were lost to a crowd of ${crowd}`);
    const again = await (await send("ada", "/runs", { prompt: "Pay it" }, "key")).text();
    expect(runIn(again) === run, () => `the key began run ${runIn(again)}, and not ${run}: ${again}`);
    if (crowd === "many") return count; // the store may be full, so that the answer gets 503
    const answered = await send("ada", `/sessions/${session}/answers`, { answers: [{ callId, type: "approve" }] });
    const text = await answered.text();
    const mine = paid.filter((each) => each === run);
    expect(mine.length === 1, () => `it was paid ${mine.length} times: ${answered.status} ${text}`);
    return count;
  },
};
