import { recovers } from "../../support/faults/simulate_recovery.ts";

Deno.test("recover() ends 60 background runs with hand-overs and kills, without a request, stored in SQLite", async () => {
  await recovers("sqlite", { conversations: 60, from: 400 });
});
