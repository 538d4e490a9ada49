/**
 * A run whose database fails in the middle.
 *
 * @module
 */
import { agent, type Model, serve, type ServeOptions, type Store } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { SlowStoreError } from "@jizai/jizai/session/durable";
import { assertEquals } from "@std/assert";
import { type App, framesOf, piecesOf, post } from "../support/requests.ts";

/** An app, and the errors that it has reported. */
export interface Served {
  readonly app: App;
  readonly errors: readonly string[];
}

/** Waits. */
export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A model that streams `count` words, 20 milliseconds apart. */
function slowModel(count: number): Model {
  function* reads() {
    for (let word = 1; word <= count; word++) yield delay(20).then(() => [{ type: "text" as const, text: `${word} ` }]);
    yield [{ type: "finish" as const, reason: "stop" as const, usage: { input: 1, output: 1 } }];
  }
  return scripted(...Array.from({ length: 10 }, () => () => ({ reads: reads() })));
}

/** Serves an agent that answers with `count` words. */
export function servedOn(store: Store, count = 3, options: ServeOptions = {}): Served {
  const errors: string[] = [];
  const app = serve(agent({ model: slowModel(count) }), {
    ...options,
    store,
    onError: (error) => {
      if (!(error instanceof SlowStoreError)) errors.push(reasonOf(error)); // each fault makes the store slow
    },
  });
  return { app, errors };
}

/** Returns the messages of an error and of its causes. Some drivers reject with a list of errors. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join("; ");
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${reasonOf(error.cause)}`;
}

/** Lets `fault` happen after the fifth of 60 words. The client must receive every event once, also when it reads the run again. */
export async function assertSurvives(store: Store, fault: () => Promise<void>): Promise<void> {
  const { app, errors } = servedOn(store, 60);
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Count" }));
  const begin = await pieces.until('"5 "');
  const [rest] = await Promise.all([pieces.rest(), fault()]);
  const events = framesOf(begin + rest);
  assertEquals(errors, []);
  assertEquals(events.map(({ id }) => id), events.map((_, index) => index + 1));
  const text = events.map((event) => event.type === "text.delta" ? event.text : "").join("");
  assertEquals(text, Array.from({ length: 60 }, (_, index) => `${index + 1} `).join(""));
  assertEquals(events.at(-1)?.type, "run.finished");
  const run = /"run":"([^"]+)"/.exec(begin)?.[1];
  assertEquals(framesOf(await (await app.request(`/runs/${run}?after=0`)).text()), events);
}

/** Asserts that a prompt is refused with an error before anything is accepted, and returns the reason that the operator reads. */
export async function assertRefuses({ app, errors }: Served): Promise<string> {
  const before = errors.length;
  const response = await post(app, "/runs", { prompt: "Count" });
  const body = await response.text();
  assertEquals([response.status >= 500, body.includes("prompt.accepted")], [true, false]);
  return errors.slice(before).join("; ");
}

/** Asserts that a prompt is answered, at most a few seconds after the database is up: a driver may still wait to connect, and the prompt is refused until then. */
export async function assertAnswers({ app }: Served, prompt: object = { prompt: "Count" }): Promise<void> {
  for (let left = 3;; left--) {
    const response = await post(app, "/runs", prompt);
    const text = await response.text();
    if (response.status !== 503 || left === 0) {
      return assertEquals(framesOf(text).at(-1)?.type, "run.finished", text);
    }
    await delay(1_000 * Number(response.headers.get("retry-after")));
  }
}
