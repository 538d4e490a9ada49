/**
 * The capacity of small heaps, and the deadline of the store. Runs with transcripts of 100 KB, which `capacity.bytes` admits to a heap of 128 and of 512 MB, all
 * end. A request and a run get over a store that is frozen.
 *
 * @module
 */
import { agent, memory, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { deno } from "../kit/processes.ts";
import type { Measure } from "../kit/measure.ts";

export async function capacityMeasures(): Promise<readonly Measure[]> {
  return [
    ...await heapMeasures(128, 96, 600),
    ...await heapMeasures(512, 400, 2_500),
    await refusalTime(),
    await survivedOutage(),
  ];
}

/** Offers runs to a process with a small heap. */
async function heapMeasures(heap: number, capacity: number, requests: number): Promise<readonly Measure[]> {
  const flags = ["--no-check", "--no-prompt", `--v8-flags=--max-old-space-size=${heap}`];
  const program = new URL("../programs/small_heap.ts", import.meta.url).pathname;
  const printed = await deno(["run", ...flags, program, `${capacity}`, `${requests}`]);
  const { admitted, ended } = JSON.parse(printed);
  const name = `a heap of ${heap} MB, capacity.bytes of ${capacity} MB`;
  return [
    { what: `${name}: runs with 100 KB that are admitted`, figure: admitted, atLeast: heap * 2, unit: "runs" },
    { what: `${name}: admitted runs that do not end`, figure: admitted - ended, atMost: 0, unit: "runs" },
  ];
}

/** A store whose calls do not return while it is frozen, and the deadline of its server. */
function freezing(deadline: number) {
  const { journal } = memory();
  let thaw: Promise<void> | undefined;
  const frozen = Object.fromEntries(
    (["head", "open", "append", "entries", "read", "post"] as const).map((operation) => [
      operation,
      async (...args: never[]) => {
        await thaw;
        return await (journal[operation] as (...args: never[]) => Promise<unknown>)(...args); // it takes what its caller gives
      },
    ]),
  );
  const store = durable({ ...journal, ...frozen });
  return { options: { store, storeDeadline: deadline, onError() {} }, freeze: (until: Promise<void>) => thaw = until };
}

/** Measures how long a new request waits for its 503 while the store is frozen. */
async function refusalTime(): Promise<Measure> {
  const { options, freeze } = freezing(1_000);
  const app = serve(agent({ model: scripted("Hi") }), options);
  const { promise, resolve } = Promise.withResolvers<void>();
  freeze(promise);
  const began = performance.now();
  const { status } = await post(app);
  const figure = status === 503 ? performance.now() - began : NaN;
  resolve();
  return {
    what: "a frozen store, a deadline of 1,000 ms: time until a new request gets 503",
    figure,
    atMost: 1_500,
    unit: "ms",
  };
}

/** Measures how long after an outage of 15 seconds a run ends. */
async function survivedOutage(): Promise<Measure> {
  const { options, freeze } = freezing(5_000);
  const { promise, resolve } = Promise.withResolvers<void>();
  const model = scripted({
    before() {
      freeze(promise);
      setTimeout(resolve, 15_000);
      return Promise.resolve();
    },
    text: "Hi",
  });
  const app = serve(agent({ model }), options);
  const response = await post(app);
  const text = response.text().then((text) => [text, performance.now()] as const);
  await promise;
  const thawed = performance.now();
  const [events, at] = await text;
  const figure = events.includes(`"type":"run.finished"`) ? at - thawed : NaN;
  return {
    what: "a store that is frozen for 15 s: time from then until the run ends",
    figure,
    atMost: 5_000,
    unit: "ms",
  };
}

async function post(
  app: { request(path: string, init: RequestInit): Response | Promise<Response> },
): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return await app.request("/runs", { method: "POST", headers, body: JSON.stringify({ prompt: "Hi" }) });
}
