import { recovers } from "../../support/faults/simulate_recovery.ts";

Deno.test("recover() ends 30 background runs with hand-overs and kills, without a request, stored in SQLite", async () => {
  await recovers("sqlite", { conversations: 30, from: 400 });
});
