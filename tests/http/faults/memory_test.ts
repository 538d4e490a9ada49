import { survives } from "../../support/faults/simulate_conversation.ts";

Deno.test("serve() loses and repeats nothing in 100 conversations with faults, stored in memory", async () => {
  await survives("memory", { conversations: 100, from: 0 });
});
