import { assert } from "@std/assert";
import { linesOf } from "../../middleware/foreign_hooks/picoclaw/rpc_hooks/lines.ts";
import { type Leg, likeAtOnce, type Outcome } from "../support/random_agent/legs.ts";
import { seeds, withSeed } from "../support/seeded.ts";
import { killing } from "./killing.ts";

/** A process that runs legs of runs, until it is disposed of. */
function walker() {
  const process = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-prompt", new URL("walker.ts", import.meta.url).pathname],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const kill = killing(process);
  const input = process.stdin.getWriter();
  const lines = linesOf(process.stdout.values(), Infinity);
  return {
    async walk(leg: Leg): Promise<Outcome> {
      await input.write(new TextEncoder().encode(`${JSON.stringify(leg)}\n`));
      const { value, done } = await lines.next();
      if (done) throw new Error("Cannot walk any more: the process has ended");
      return JSON.parse(value);
    },
    async [Symbol.asyncDispose]() {
      await input.close();
      await lines.return(undefined);
      await kill();
    },
  };
}

Deno.test("on Deno, a run that pauses at any point continues in another process with the same outcome", async () => {
  await using odd = walker();
  await using even = walker();
  let pauses = 0;
  for (const seed of seeds(100)) {
    let legs = 0;
    const walk = (leg: Leg) => (legs++ % 2 === 0 ? even : odd).walk(leg);
    pauses += await withSeed(seed, () => likeAtOnce(seed, walk));
  }
  assert(pauses > 0);
});
