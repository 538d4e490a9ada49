/**
 * Begins runs with transcripts of 100 KB in a process whose heap is small. All of them call a tool once and end. Prints how many were admitted, and how many have
 * ended. Its arguments are `capacity.bytes` in MB, 0 for none, and the number of requests.
 *
 * @module
 */
import { agent, type Model, serve, tool } from "@jizai/jizai";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { DatabaseSync } from "node:sqlite";
import * as z from "zod";

const [megabytes = 0, requests = 0] = Deno.args.map(Number);
const begun = Promise.withResolvers<void>();
const bodies = new Set<string>();

/** A model that holds the body of its request while it answers, as an adapter of a provider does. */
const model: Model = {
  id: "patient",
  async *stream({ messages }) {
    const body = JSON.stringify(messages);
    bodies.add(body);
    await begun.promise;
    bodies.delete(body);
    const isCalled = messages.some(({ role }) => role === "tool");
    if (isCalled) yield [{ type: "text", text: "Done." }, { type: "finish", reason: "stop" }];
    else {
      const call = { id: "c1", name: "look" };
      yield [{ type: "call.start", ...call }, { type: "call.end", ...call }, { type: "finish", reason: "calls" }];
    }
  },
};

const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen. ".repeat(1_000) });
const database = new DatabaseSync(":memory:"); // its memory is none of the heap
migrate(database);
const capacity = megabytes > 0 ? { bytes: megabytes * 2 ** 20 } : {};
const app = serve(agent({ model, tools: [look] }), { store: sqliteStore(database), capacity });
let ended = 0;
const refusals = new Set<number>();
const runs: string[] = [];
for (let request = 0; request < requests; request++) {
  const prompt = Array.from({ length: 10_000 }, (_, word) => `${request + word} words`.padEnd(10)).join("");
  const response = await app.request("/runs", {
    method: "POST",
    headers: { "content-type": "application/json", prefer: "respond-async" },
    body: JSON.stringify({ prompt }),
  });
  if (response.status === 202) runs.push((await response.json()).run);
  else refusals.add(response.status);
}
begun.resolve();
await app.settled();
for (const run of runs) {
  const events = await (await app.request(`/runs/${run}`)).text();
  if (events.includes(`"type":"run.finished"`)) ended++;
}
console.log(JSON.stringify({ admitted: runs.length, ended, refusals: [...refusals] }));
