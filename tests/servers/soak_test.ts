import { simulateCounting } from "../support/faults/simulate_counting.ts"; // first, because of its first import
import { placesOf } from "../support/faults/places.ts";
import { simulateJournal } from "../support/faults/simulate_journal.ts";
import { simulateRecovery } from "../support/faults/simulate_recovery.ts";
import { withSeed } from "../support/seeded.ts";
import { isPostgresMissing } from "./postgres_server.ts";
import { isRedisMissing } from "./redis_server.ts";

const noPostgres = await isPostgresMissing() && "Postgres is not installed; `apt-get install postgresql`";
const noRedis = await isRedisMissing() && "Redis is not installed; `apt-get install redis-server`";

/** The databases with the number of their seeds, of which `deno task soak` simulates 10,000. */
for (
  const [name, count, missing] of [
    ["postgres", 20, noPostgres],
    ["redis", 10, noRedis],
    ["upstash", 6, noRedis],
    ["libsql", 4, false],
    ["d1", 1, false],
  ] as const
) {
  const left = missing ? ` (left out: ${missing})` : "";
  Deno.test({
    name: `recover() ends background runs with hand-overs and kills, and processes count together, in ${name}${left}`,
    ignore: missing !== false,
    async fn() {
      await using places = await placesOf(name);
      if (!places) throw new Error(`Cannot open ${name}: its server is not installed`);
      for (let seed = 0; seed < count; seed++) {
        for (const simulate of [simulateRecovery, simulateCounting, simulateJournal]) {
          await places.empty();
          await withSeed(seed, async () => void await simulate(seed, places.open));
        }
      }
    },
  });
}
