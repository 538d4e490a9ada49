import { survives } from "../../support/faults/simulate_conversation.ts";

Deno.test("serve() loses and repeats nothing in 40 conversations with faults, stored in SQLite", async () => {
  await survives("sqlite", { conversations: 40, from: 20_060 });
});
