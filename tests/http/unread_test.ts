/**
 * The cost of a client that never reads, and of a tool that reports progress without end.
 *
 * @module
 */
import { agent, type Event, memory, type Model, serve, type ServeOptions, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { assert, assertEquals, assertLess } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { eventsOf, post } from "../support/requests.ts";

const highWater = 65_536;
const text = "x".repeat(1_024);

/** A model that never stops, and counts the texts that were taken from it. */
function endless(): Model & { readonly taken: () => number } {
  let taken = 0;
  return {
    id: "endless",
    taken: () => taken,
    async *stream(_, { signal }) {
      for (;;) {
        signal.throwIfAborted();
        taken++;
        yield [{ type: "text", text }];
      }
    },
  };
}

/** Lets everything happen that can happen without a reader. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
}

const keys = [{ id: "k1", secret: "a secret of at least thirty-two bytes" }];

/** The servers, and how many characters they buffer: what is to be stored, and what waits for the client, count too. */
const servers: Readonly<Record<string, readonly [options: ServeOptions, most: number]>> = {
  "without a store": [{ resumeTokens: resumeTokens({ keys }) }, 1.2 * highWater],
  "with a store in memory": [{ store: memory() }, 3 * highWater],
  "with a durable store": [{ store: durable(memory().journal) }, 3 * highWater],
};

for (const [how, [options, most]] of Object.entries(servers)) {
  Deno.test(`serve() ${how} buffers at most the high-water mark for a client that never reads`, async () => {
    const model = endless();
    const app = serve(agent({ model }), options);
    const response = await post(app, "/runs", { prompt: "Hi" });
    await settle();
    const before = model.taken();
    await settle();
    assertEquals(model.taken(), before);
    assertLess(before * text.length, most);
    await response.body?.cancel();
    await settle();
  });
}

Deno.test("serve() buffers no more for a client that never reads once its run has reached its deadline", async () => {
  const time = new FakeTime();
  try {
    const model = endless();
    const app = serve(agent({ model }), { limits: { time: 60_000 }, heartbeat: 1_000_000 });
    const responses = await Promise.all(Array.from({ length: 20 }, () => post(app, "/runs", { prompt: "Hi" })));
    await time.tickAsync(120_000);
    const bodies = await Promise.all(responses.map((response) => response.text()));
    for (const body of bodies) {
      assert(
        body.includes('"type":"run.aborted"') || body.includes('"type":"run.finished","status":"limit"'),
        body.slice(-500),
      );
      assertLess(body.length, 3 * highWater); // the last events repeat the text of the answer
    }
  } finally {
    time.restore();
  }
});

const million = 1_000_000;

/** A tool that reports progress a million times. */
const busy = tool({
  name: "busy",
  description: "",
  input: z.object({}),
  execute(_, { progress }) {
    for (let step = 1; step <= million; step++) progress({ step });
    return "Done.";
  },
});
const busyModel = () => scripted({ calls: [["busy", {}]] }, "Done.");

/** Expects few events of progress, in order, of which the last one is the latest. */
function expectBounded(events: readonly Event[], most: number): void {
  const steps = events.flatMap((event) =>
    event.type === "tool.progress" ? [(event.data as { step: number }).step] : []
  );
  assertLess(steps.length, most);
  assertEquals(steps, steps.toSorted((a, b) => a - b));
  assertEquals(steps.at(-1), million);
  const types = events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1]);
  assertEquals(types.slice(types.indexOf("tool.progress"), types.indexOf("tool.progress") + 2), [
    "tool.progress",
    "tool.finished",
  ]);
}

Deno.test("a million events of progress stay bounded, and the latest one arrives before the result", async () => {
  const observed: Event[] = [];
  const observe = (event: Event) => void (event.type === "tool.progress" && observed.push(event));
  const { events, result } = agent({ model: busyModel(), tools: [busy], observe }).run("Go");
  assertEquals((await result).status, "done");
  expectBounded(await Array.fromAsync(events), 10_001);
  assertEquals(observed.length, million);
  for (const options of [{}, { store: durable(memory().journal) }]) {
    const response = await post(serve(agent({ model: busyModel(), tools: [busy] }), options), "/runs", {
      prompt: "Go",
    });
    await settle(); // the client reads late
    expectBounded(await eventsOf(response), 2_000);
  }
});
