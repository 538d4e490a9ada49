import { recovers } from "../../support/faults/simulate_recovery.ts";

Deno.test("recover() ends 15 background runs with hand-overs and kills, without a request, stored in Deno KV", async () => {
  await recovers("deno_kv", { conversations: 15, from: 600 });
});
