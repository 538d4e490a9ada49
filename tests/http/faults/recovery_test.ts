/**
 * Simulated background runs with hand-overs and kills, on each storage.
 */
import { recovers } from "../../support/faults/simulate_recovery.ts";

Deno.test("recover() ends 60 background runs with hand-overs and kills, without a request, stored in memory", async () => {
  await recovers("memory", { conversations: 60, from: 0 });
});

Deno.test("recover() ends 30 background runs with hand-overs and kills, without a request, stored in SQLite", async () => {
  await recovers("sqlite", { conversations: 30, from: 400 });
});

Deno.test("recover() ends 15 background runs with hand-overs and kills, without a request, stored in Deno KV", async () => {
  await recovers("deno_kv", { conversations: 15, from: 600 });
});

Deno.test("recover() ends 30 background runs with hand-overs and kills, without a request, stored in a Durable Object", async () => {
  await recovers("durable_object", { conversations: 30, from: 800 });
});
