import { type Event, serve } from "@jizai/jizai";
import { client, type ClientRun, fold, noRun } from "@jizai/jizai/client";
import { memoryLog } from "@jizai/jizai/session/log";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { named } from "../support/run_events.ts";
import { answers, asking, recorded } from "../support/recorded.ts";
import type { App } from "../support/requests.ts";
import { type Chance, seeded } from "../support/seeded.ts";
import { type Fate, faultyNetwork } from "../support/faulty_network.ts";

const frames = (await recorded()).flat();

/** Returns the fault of one request, most often a bad one. */
function fateBy({ one, below }: Chance): Fate {
  const type = one<Fate["type"]>(["well", "lost", "unanswered", "refused", "cut", "cut", "cut", "ended", "ended"]);
  switch (type) {
    case "refused":
      return { type, status: one([429, 500, 502, 503, 504]) };
    case "cut":
    case "ended":
      return { type, after: below(2_500) };
    default:
      return { type };
  }
}

/** Returns a function that splits bytes at random. */
function piecesBy({ one, below }: Chance): (text: string) => readonly Uint8Array<ArrayBuffer>[] {
  return (text) => {
    const bytes = new TextEncoder().encode(one([text, text.replaceAll("\n", "\r\n"), `:\n\n${text}:\n\n`]));
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    for (let at = 0, end = 0; at < bytes.length; at = end) {
      end = at + 1 + below(one([3, 40, 1_000]));
      pieces.push(bytes.slice(at, end));
    }
    return pieces;
  };
}

/** An app that does not receive idempotency keys. */
function keyless(app: App): App {
  return {
    request(path, { headers, ...init } = {}) {
      const sent = new Headers(headers);
      if (path.endsWith("/answers")) sent.delete("idempotency-key");
      return app.request(path, { ...init, headers: sent });
    },
  };
}

/** Reads a run to its end over a bad network, and answers its questions. Sometimes another page takes over. */
async function read(seed: number) {
  const chance = seeded(seed);
  const { assistant, model, done } = asking();
  const app = serve(assistant, { log: memoryLog({ expireIn: Infinity }), onClientGone: "detach" });
  const connection = faultyNetwork(chance.one([app, keyless(app)]), {
    fate: () => fateBy(chance),
    pieces: piecesBy(chance),
  });
  const reader = client("", { ...connection, attempts: 1_000 });
  const events: Event[] = [];
  const rest = [...answers];
  let run: ClientRun = reader.run({ prompt: "Go" });
  for (;;) {
    let left = false;
    for await (const event of run.events) {
      events.push(event);
      left = chance.below(20) === 0;
      if (left) break;
    }
    if (left) run = reader.follow(JSON.parse(JSON.stringify(run.state)));
    else if (run.state.status === "paused") run = run.answer(rest.shift() ?? []);
    else break;
  }
  const { run: id = "", session = "" } = run.state;
  return { outcome: named({ events, state: run.state }, { run: id, session }), asked: model.requests.length, done };
}

Deno.test("client() loses and repeats no event in 200 runs over bad networks", async () => {
  using time = new FakeTime();
  const state = frames.reduce(fold, noRun);
  const { run = "", session = "" } = state;
  const events = frames.map(({ event }) => event);
  const expected = {
    outcome: named({ events, state }, { run, session }),
    asked: 3,
    done: ["look_1", "look_2", "drop_1"].map((id) => `${id} 🔥\u2028`),
  };
  const runs = Array.from({ length: 200 }, async (_, seed) => {
    const outcome = await read(seed).catch((error) => {
      throw new Error(`Cannot read the run of seed ${seed}`, { cause: error });
    });
    assertEquals(outcome, expected, `seed ${seed}`);
  });
  let settled = false;
  const over = Promise.all(runs).finally(() => settled = true);
  over.catch(() => {}); // awaited below
  while (!settled) await time.tickAsync(1_000);
  await over;
});
