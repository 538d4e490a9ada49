import { survives } from "../../support/faults/simulate_conversation.ts";

Deno.test("serve() loses and repeats nothing in 50 conversations with faults, stored in a Durable Object", async () => {
  await survives("durable_object", { conversations: 50, from: 200 });
});
