/**
 * Processes that count and write in one key-value database with faults, and the invariants that it must keep.
 *
 * @module
 */
import "../simulation.ts"; // first, because it replaces the clocks that other modules read when they are loaded
import { assert, assertEquals } from "@std/assert";
import type { KeyValue } from "@jizai/jizai/session/key_value";
import type { Chance } from "../seeded.ts";
import { simulate, sleep } from "../simulation.ts";
import type { Trace } from "./process.ts";
import type { Figures } from "./simulate_conversation.ts";
import type { Place } from "./storage.ts";

const counters = ["a", "b"] as const;

/** The additions to a counter. */
interface Counted {
  /** The sums that were returned. */
  readonly sums: number[];
  /** The number of additions of 1 that may have been made. */
  unknown: number;
}

/** Simulates processes with the database of `seed`. Throws if it breaks an invariant. `log` receives a line for each event. */
export async function simulateCounting(seed: number, open: () => Place, log: Trace = () => {}): Promise<Figures> {
  return await simulate(seed, async (chance) => {
    const place = open();
    const counted = new Map(counters.map((name) => [name, { sums: [], unknown: 0 } as Counted]));
    const count = 2 + chance.below(3);
    const writes = await Promise.all(
      Array.from(
        { length: count },
        (_, index) => work(place.open().keyValue, `own ${index}`, { chance, counted, log }),
      ),
    );
    const { keyValue } = place.open();
    for (const [name, { sums, unknown }] of counted) {
      const value = Number(await keyValue.get(name) ?? 0);
      log(`${name} is ${value} after ${sums.length} sums and ${unknown} that may have been made`);
      assertEquals(new Set(sums).size, sums.length, "Two additions returned the same sum");
      assert(value >= sums.length && value <= sums.length + unknown, "An addition was lost, or made twice");
      assert(sums.every((sum) => sum <= value), "A counter has fallen");
    }
    const sums = [...counted.values()].flatMap(({ sums }) => sums).length;
    return { processes: count, sums, writes: writes.reduce((sum, each) => sum + each, 0) };
  });
}

/** Counts, and writes a text of its own, for a while. Returns the number of writes. */
async function work(
  keyValue: KeyValue,
  own: string,
  { chance, counted, log }: {
    readonly chance: Chance;
    readonly counted: ReadonlyMap<string, Counted>;
    readonly log: Trace;
  },
): Promise<number> {
  const { below, one } = chance;
  /** The texts of which one is stored. The first is certain unless a later write may have been made. */
  let texts: readonly (string | undefined)[] = [undefined];
  let writes = 0;

  /** Does an operation, sometimes with a failure before or after it. Returns undefined if it failed. */
  async function attempt<T>(what: string, operation: () => Promise<T>): Promise<{ readonly value: T } | undefined> {
    await sleep(one([0, 0, 1, 10]));
    const fate = below(10);
    log(`${own}: ${what}${fate === 0 ? ", whose answer is lost" : fate === 1 ? ", which is lost" : ""}`);
    if (fate === 1) return undefined;
    const value = await operation();
    return fate === 0 ? undefined : { value };
  }

  for (let left = 10 + below(20); left > 0; left--) {
    const name = one(counters);
    const kind = below(4);
    if (kind < 2) {
      const done = await attempt(`adds to ${name}`, () => keyValue.increment(name));
      const counts = counted.get(name);
      if (done) counts?.sums.push(done.value);
      else if (counts) counts.unknown++;
    } else if (kind === 2) {
      const text = `${own} ${++writes}`;
      const removes = below(4) === 0;
      const done = await attempt(removes ? "deletes" : `sets ${text}`, async () => {
        if (removes) await keyValue.delete(own);
        else await keyValue.set(own, text);
      });
      texts = [...(done ? [] : texts), removes ? undefined : text];
    } else {
      const done = await attempt("reads", () => keyValue.get(own));
      if (done) assert(texts.includes(done.value), `It reads ${done.value}; expected one of ${texts}`);
    }
  }
  return writes;
}
