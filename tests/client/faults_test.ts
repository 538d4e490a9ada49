import { client, type ClientRun, fold, noRun } from "@jizai/jizai/client";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { type Fate, logServer } from "../support/log_server.ts";
import { answers, recorded } from "../support/recorded.ts";
import { type Chance, seeded } from "../support/seeded.ts";

const legs = await recorded();
const frames = legs.flat();

/** What befalls one request, most often something bad. */
function fateBy({ one, below }: Chance): Fate {
  const type = one<Fate["type"]>(["well", "lost", "unheard", "refused", "cut", "cut", "cut", "ended", "ended"]);
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

/** Bytes in pieces of any size. */
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

/** Reads a run to its end through whatever happens, and answers what it asks; now and then another page goes on with it. */
async function read(seed: number) {
  const chance = seeded(seed);
  const server = logServer(legs, {
    fate: () => fateBy(chance),
    pieces: piecesBy(chance),
    keyed: chance.one([true, false]),
  });
  const assistant = client("", { ...server, attempts: 1_000 });
  const events: unknown[] = [];
  const rest = [...answers];
  let run: ClientRun = assistant.run({ prompt: "Go" });
  for (;;) {
    let left = false;
    for await (const event of run.events) {
      events.push(event);
      left = chance.below(20) === 0;
      if (left) break;
    }
    if (left) run = assistant.follow(JSON.parse(JSON.stringify(run.state)));
    else if (run.state.status === "paused") run = run.answer(rest.shift() ?? []);
    else return { events, state: run.state, sent: server.sent };
  }
}

Deno.test("client() loses nothing and doubles nothing, in 200 runs through bad networks", async () => {
  using time = new FakeTime();
  const expected = {
    events: frames.map(({ event }) => event),
    state: frames.reduce(fold, noRun),
    sent: [{ prompt: "Go" }, ...answers.map((given) => ({ answers: given }))],
  };
  const runs = Array.from({ length: 200 }, async (_, seed) => {
    const came = await read(seed).catch((error) => {
      throw new Error(`Cannot read the run of seed ${seed}`, { cause: error });
    });
    assertEquals(came, expected, `seed ${seed}`);
  });
  let settled = false;
  const over = Promise.all(runs).finally(() => settled = true);
  over.catch(() => {}); // it is waited for below
  while (!settled) await time.tickAsync(30_000);
  await over;
});
