import { survives } from "../../support/faults/simulate_conversation.ts";

Deno.test("serve() loses and repeats nothing in 20 conversations with faults, stored in Deno KV", async () => {
  await survives("deno_kv", { conversations: 20, from: 300 });
});
