import { survives } from "../../support/faults/simulate_conversation.ts";

Deno.test("serve() loses and repeats nothing in 60 conversations with faults, stored in Deno KV", async () => {
  await survives("deno_kv", { conversations: 60, from: 300 });
});
