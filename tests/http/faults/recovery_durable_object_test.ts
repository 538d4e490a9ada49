import { recovers } from "../../support/faults/simulate_recovery.ts";

Deno.test("recover() ends 60 background runs with hand-overs and kills, without a request, stored in a Durable Object", async () => {
  await recovers("durable_object", { conversations: 60, from: 800 });
});
