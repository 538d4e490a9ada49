/**
 * Simulated conversations with faults, on each storage.
 */
import { survives } from "../../support/faults/simulate_conversation.ts";

Deno.test("serve() loses and repeats nothing in 50 conversations with faults, stored in memory", async () => {
  await survives("memory", { conversations: 50, from: 0 });
});

Deno.test("serve() loses and repeats nothing in 20 conversations with faults, stored in SQLite", async () => {
  await survives("sqlite", { conversations: 20, from: 20_060 });
});

Deno.test("serve() loses and repeats nothing in 20 conversations with faults, stored in Deno KV", async () => {
  await survives("deno_kv", { conversations: 20, from: 300 });
});

Deno.test("serve() loses and repeats nothing in 25 conversations with faults, stored in a Durable Object", async () => {
  await survives("durable_object", { conversations: 25, from: 200 });
});
