import type { Adapter } from "../support/faults/storage.ts";
import { survives } from "../support/faults/simulate_conversation.ts";
import { recovers } from "../support/faults/simulate_recovery.ts";

// Other seeds than those of tests/http/faults, which the unit tests simulate. `deno task soak` takes thousands.
const conversations: readonly (readonly [Adapter, number, number])[] = [
  ["memory", 100, 100],
  ["durable_object", 50, 250],
  ["deno_kv", 40, 320],
];
const backgroundRuns: readonly (readonly [Adapter, number, number])[] = [
  ["memory", 40, 60],
  ["durable_object", 30, 830],
  ["deno_kv", 15, 615],
  ["sqlite", 30, 430],
];

for (const [adapter, count, from] of conversations) {
  Deno.test(`serve() loses and repeats nothing in ${count} more conversations with faults, stored in ${adapter}`, async () => {
    await survives(adapter, { conversations: count, from });
  });
}

for (const [adapter, count, from] of backgroundRuns) {
  Deno.test(`recover() ends ${count} more background runs with hand-overs and kills, stored in ${adapter}`, async () => {
    await recovers(adapter, { conversations: count, from });
  });
}
