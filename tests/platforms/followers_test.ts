/**
 * Followers of a run in one Worker: each is a request of its own, none waits for a promise of another one, and they share what is read.
 */
import { assertEquals } from "@std/assert";
import { added, begun, ended as endedRun } from "../support/begun_journal.ts";
import { eventually } from "./eventually.ts";
import { folder } from "./folder.ts";
import { bundled, type Served, served } from "./workerd.ts";

const script = await bundled("tests/platforms/following_worker.ts");

/** Serves the Worker. */
async function workers(): Promise<Served> {
  const disk = await folder();
  const worker = await served(script, { className: "Database" }, disk.path);
  return {
    ...worker,
    async [Symbol.asyncDispose]() {
      await worker[Symbol.asyncDispose]();
      await disk[Symbol.asyncDispose]();
    },
  };
}

/** Follows the run in a request. */
async function followerOf({ request }: Served, after = 0) {
  const lines: string[] = [];
  const leaving = new AbortController();
  const response = await request(`/follow?after=${after}`, { signal: leaving.signal });
  let text = "";
  const over = (async () => {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      lines.splice(0, Infinity, ...text.split("\n").slice(1, -1));
    }
    return lines;
  })();
  over.catch(() => {}); // a client that leaves
  return { lines, over, leave: () => leaving.abort() };
}

/** Appends a line as another process, whose number is its text. */
async function append({ request }: Served, after: number, ended = false): Promise<void> {
  const n = after + 1;
  const addition = after === 0 ? begun("j") : ended ? endedRun(n, []) : added(n, [`${n}`]);
  const response = await request("/append", { method: "POST", body: JSON.stringify(addition) });
  assertEquals(await response.json(), { stored: true, last: 1 });
}

async function stateOf({ request }: Served): Promise<{ readonly reads: number; readonly held: number }> {
  return await (await request("/state")).json();
}

/** Lets the next read wait for some milliseconds, and waits until it has begun. */
async function holdNext(worker: Served, ms: number): Promise<void> {
  const { held } = await stateOf(worker);
  await (await worker.request("/hold", { method: "POST", body: `${ms}` })).text();
  await eventually(async () => (await stateOf(worker)).held > held || undefined);
}

/** The first `count` lines as a follower receives them. */
function numbered(count: number, after = 0): readonly string[] {
  return Array.from({ length: count - after }, (_, index) => `${after + index + 1} ${after + index + 1}`);
}

async function untilRead(lines: readonly string[], count: number): Promise<void> {
  await eventually(() => Promise.resolve(lines.length >= count || undefined));
}

Deno.test("in workerd, 20 followers share the reads of a run, and receive each event once", async () => {
  await using worker = await workers();
  await append(worker, 0);
  const all = await Promise.all(Array.from({ length: 20 }, () => followerOf(worker)));
  for (const { lines } of all) await untilRead(lines, 1);
  const before = await stateOf(worker);
  for (let after = 1; after < 10; after++) {
    await append(worker, after);
    for (const { lines } of all) await untilRead(lines, after + 1);
  }
  const reads = (await stateOf(worker)).reads - before.reads;
  assertEquals([reads >= 9, reads < 9 * 10], [true, true], `${reads} reads`); // 180 if each read for itself
  await append(worker, 10, true);
  for (const { over } of all) assertEquals(await over, numbered(10));
});

for (const leaves of [true, false]) {
  const what = leaves ? "whose client leaves" : "that is never answered";
  Deno.test(`in workerd, other followers take over a read ${what}, without a gap and without a repetition`, async () => {
    await using worker = await workers();
    await append(worker, 0);
    const reading = await followerOf(worker);
    await untilRead(reading.lines, 1);
    await holdNext(worker, 60_000);
    const others = await Promise.all([followerOf(worker, 1), followerOf(worker, 1), followerOf(worker)]);
    await append(worker, 1);
    if (leaves) reading.leave();
    for (const [index, { lines }] of others.entries()) await untilRead(lines, index < 2 ? 1 : 2);
    await append(worker, 2);
    await append(worker, 3, true);
    assertEquals(await Promise.all(others.map(({ over }) => over)), [numbered(3, 1), numbered(3, 1), numbered(3)]);
    assertEquals(reading.lines, numbered(1)); // it waits for the answer
    reading.leave();
    await reading.over.catch(() => {});
  });
}

Deno.test("in workerd, followers that leave one after another leave the others a whole stream", async () => {
  await using worker = await workers();
  await append(worker, 0);
  const all = await Promise.all(Array.from({ length: 6 }, () => followerOf(worker)));
  for (const { lines } of all) await untilRead(lines, 1);
  for (const [index, { leave, lines, over }] of all.slice(0, -1).entries()) {
    await holdNext(worker, 1_000); // a read of some follower
    await append(worker, index + 1);
    leave();
    await over.catch(() => {});
    for (const { lines } of all.slice(index + 1)) await untilRead(lines, index + 2);
    assertEquals(lines, numbered(lines.length));
  }
  await append(worker, 6, true);
  const last = all.at(-1);
  assertEquals(await last?.over, numbered(6));
});
