import { simulate } from "../support/simulation.ts"; // first, because it replaces the timers
import { assertEquals } from "@std/assert";
import type { JournalPage, JournalWatcher } from "../../src/core/journal.ts";
import { memoryJournal } from "../../src/core/memory_journal.ts";
import { type Followers, followers } from "../../src/session/followers.ts";
import { type Chance, seeds } from "../support/seeded.ts";

const place = { key: "s", run: 1 };
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** A record that two processes write and follow. Each line is its own number. */
class World {
  readonly #chance: Chance;
  readonly lines: string[] = [];
  ended = false;
  readonly #watchers = new Set<JournalWatcher>();
  readonly processes: readonly [Followers, Followers];
  /** The numbers of the events with which the record has ended or paused. */
  readonly ends = new Set<number>();
  /** The number of reads that never end. */
  deadReads = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
    const notifies = chance.below(2) === 0;
    const process = () =>
      followers({
        ...memoryJournal(),
        read: (_key, _run, after) => this.#read(after),
        pollEvery: notifies ? 1_000 : chance.one([50, 200]),
        watch: (_key, watcher) => {
          const own = { ...watcher };
          if (notifies) this.#watchers.add(own);
          return () => this.#watchers.delete(own);
        },
      });
    this.processes = [process(), process()];
  }

  async #read(after: number): Promise<JournalPage> {
    const { below } = this.#chance;
    await sleep(below(3) * below(40));
    const most = below(3) === 0 ? 1 + below(4) : 1_000; // pages are bounded
    const page = {
      first: after + 1,
      lines: this.lines.slice(after, after + most),
      last: this.lines.length,
      over: this.ended,
      session: "s",
      owner: undefined,
    };
    const fate = below(40);
    if (fate === 0) throw new Error("The database is down");
    if (fate === 1) {
      this.deadReads++;
      await new Promise(() => {}); // the platform has ended its request
    }
    await sleep(below(3) * below(fate === 2 ? 3_000 : 40));
    return page;
  }

  /** Appends some lines. */
  async append(count: number, ended = false): Promise<void> {
    const { below } = this.#chance;
    await sleep(below(30));
    const after = this.lines.length;
    const lines = Array.from({ length: count }, (_, index) => `${after + index + 1}`);
    this.lines.push(...lines);
    this.ended = ended;
    if (ended) this.ends.add(this.lines.length);
    for (const watcher of this.#watchers) {
      if (below(20) > 0) setTimeout(() => watcher.notify(), below(40)); // a notification may be lost
    }
  }
}

interface Received {
  readonly lines: string[];
  /** Whether it stopped by itself, at the end of the record. */
  outcome: "follows" | "ended" | "failed" | "left";
}

/** Follows the record through a process, and checks that no line is missing or repeated. */
async function follow(world: World, process: Followers, chance: Chance, received: Received): Promise<void> {
  const { below } = chance;
  const leaving = new AbortController();
  const after = below(world.lines.length + 1);
  let at = after;
  if (below(4) === 0) {
    setTimeout(() => {
      received.outcome = "left";
      leaving.abort();
    }, below(3_000));
  }
  const pause = below(3) * below(400); // a slow reader
  try {
    for await (const { first, lines } of process.tail(place, after, leaving.signal)) {
      assertEquals([first, lines], [at + 1, lines.map((_, index) => `${at + index + 1}`)]);
      at += lines.length;
      received.lines.push(...lines);
      await sleep(pause);
    }
    if (received.outcome === "follows") {
      received.outcome = "ended";
      assertEquals(world.ends.has(at), true, `It stopped after ${at}`);
    }
  } catch (error) {
    if (!(error instanceof Error) || error.message !== "The database is down") throw error;
    received.outcome = "failed";
  }
}

/** Lets processes write a record while followers come and go. */
async function scene(chance: Chance): Promise<void> {
  const { below, one } = chance;
  const world = new World(chance);
  await world.append(below(3));
  const all: Received[] = [];
  const checks: Promise<void>[] = [];
  const failures: unknown[] = [];
  for (let step = 2 + below(20); step > 0; step--) {
    const join = below(3) === 0 ? 1 + below(8) : 0;
    for (let count = 0; count < join; count++) {
      const received: Received = { lines: [], outcome: "follows" };
      all.push(received);
      checks.push(follow(world, one(world.processes), chance, received).catch((error) => void failures.push(error)));
    }
    await world.append(below(5), below(12) === 0); // a pause, which the next addition ends
    await sleep(below(3) * below(300));
  }
  await world.append(below(2), true);
  await sleep(60_000);
  if (failures.length > 0) throw failures[0];
  const waiting = all.filter(({ outcome }) => outcome === "follows");
  assertEquals(waiting.length <= world.deadReads, true, "only a follower waits whose own read never ends");
}

Deno.test("followers in two processes receive each line once, whatever reads, notifications and requests do", async () => {
  for (const seed of seeds(200)) {
    try {
      await simulate(seed, scene);
    } catch (cause) {
      throw new Error(`Seed ${seed} fails`, { cause });
    }
  }
});
