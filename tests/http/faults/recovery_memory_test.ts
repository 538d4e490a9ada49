import { recovers } from "../../support/faults/simulate_recovery.ts";

Deno.test("recover() ends 60 background runs with hand-overs and kills, without a request, stored in memory", async () => {
  await recovers("memory", { conversations: 60, from: 0 });
});
