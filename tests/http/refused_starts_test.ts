/**
 * Requests that are refused since the store does not answer: nothing has begun, the session is free at once, and the request can be repeated. Each request meets a
 * store that freezes at each of its calls, in each way.
 *
 * @module
 */
import { agent, type RunEnd, serve, type ServeOptions, textOf, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { durable } from "@jizai/jizai/session/durable";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { drop } from "../support/asking.ts";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { type Freeze, freezes, freezingJournal } from "../support/freezing.ts";
import { type App, eventsOf, first, type Framed, framesOf, piecesOf, post } from "../support/requests.ts";

/** A session, and the events of its run so far. */
interface Before {
  readonly session: string;
  readonly events: readonly Framed[];
}

/** A request that starts a run. */
interface Start {
  readonly options?: ServeOptions;
  /** The steps of the model before the request. Default: there is no session. */
  readonly before?: "Hello." | "asks";
  /** Sends the request. */
  readonly send: (app: App, before: Before) => Promise<Response>;
  /** False if it asks the model nothing. Default: true. */
  readonly isPrompt?: boolean;
}

const approve = { callId: "call_1", type: "approve" };
const key = { "idempotency-key": "k1" };

const starts: Readonly<Record<string, Start>> = {
  "a prompt": { send: (app) => post(app, "/runs", { prompt: "Go" }) },
  "a prompt with a key": { send: (app) => post(app, "/runs", { prompt: "Go" }, key) },
  "a prompt to a session": {
    before: "Hello.",
    send: (app, { session }) => post(app, "/runs", { prompt: "Go", session }),
  },
  "a prompt to a session with a key": {
    before: "Hello.",
    send: (app, { session }) => post(app, "/runs", { prompt: "Go", session }, key),
  },
  "a prompt whose end is reported": {
    before: "Hello.",
    options: { onEnd() {} },
    send: (app, { session }) => post(app, "/runs", { prompt: "Go", session }),
  },
  "a prompt to a new session of the URL": {
    options: { session: () => "mine" },
    send: (app) => post(app, "/runs", { prompt: "Go" }),
  },
  "an answer": {
    before: "asks",
    send: (app, { session, events }) => {
      const { run } = first("run.started", events);
      return post(app, `/sessions/${session}/answers`, { run, at: events.length, answers: [approve] });
    },
  },
  "an answer with a key, whose end is reported, of a server that uses the store alone": {
    before: "asks",
    options: { singleProcess: true, onEnd() {} },
    send: (app, { session }) => post(app, `/sessions/${session}/answers`, { answers: [approve] }, key),
  },
  "an answer with a resume token": {
    before: "asks",
    options: { resumeTokens: resumeTokens({ keys: [{ id: "k1", secret: "a secret of at least thirty-two bytes" }] }) },
    send: (app, { session, events }) => {
      const { resumeToken } = first("run.paused", events);
      return post(app, `/sessions/${session}/answers`, { answers: [approve], resumeToken });
    },
  },
  "a compaction": {
    before: "Hello.",
    isPrompt: false,
    send: (app, { session }) => post(app, `/sessions/${session}/compact`, {}),
  },
};

/** A store that freezes after `more` calls, and the deadline of the server. */
interface Fault {
  readonly freeze: Freeze;
  readonly more: number;
  readonly deadline: number;
}

/** Sends a request to a store that freezes after `more` calls. Returns false if the request has its response before. */
async function refuse(
  { options = {}, before, send, isPrompt = true }: Start,
  { freeze, more, deadline }: Fault,
): Promise<boolean> {
  using time = new FakeTime();
  const frozen = freezingJournal();
  const kept = durable(frozen.base);
  const asks = { calls: [{ id: "call_1", name: "drop", input: { table: "a" } }] };
  const model = scripted(...before === undefined ? [] : [before === "asks" ? asks : before], "Done.", "Done.");
  const ends: string[] = [];
  const onEnd = options.onEnd && (({ id }: RunEnd) => void ends.push(id));
  const app = serve(agent({ model, tools: [drop], use: [compaction()] }), {
    store: durable(frozen.journal),
    storeDeadline: deadline,
    onError() {},
    ...options,
    ...(onEnd && { onEnd }),
  });
  const events = before === undefined ? [] : await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  await app.settled();
  const session = before === undefined ? "" : first("run.started", events).session;
  const stored = async () => await Promise.all((await kept.list()).map((id) => kept.load(id)));
  const [storedBefore, requestsBefore, endsBefore] = [await stored(), model.requests.length, [...ends]];

  const met = frozen.freeze(freeze, more);
  const sent = send(app, { session, events });
  await Promise.race([met, sent]);
  await advance(time, Math.max(deadline, 1_000)); // one deadline, or the retries of calls that fail at once
  const response = await sent;
  if (response.status !== 503) {
    assertEquals(response.status, 200);
    frozen.thaw();
    await advanceUntilSettled(time, response.text());
    await advanceUntilSettled(time, app.settled());
    return false;
  }
  assertEquals(response.headers.get("retry-after"), "2");
  frozen.thaw();
  assertEquals((await app.request("/ready")).status, 200);
  await advance(time, 0);
  assertEquals([await stored(), model.requests.length, app.stats().runs], [storedBefore, requestsBefore, 0]);

  const again = await send(app, { session, events });
  assertEquals([again.status, (await eventsOf(again)).at(-1)?.type], [200, "run.finished"]);
  await advance(time, 5_000); // calls that have no answer end
  await app.settled();
  assertEquals(model.requests.length, requestsBefore + (isPrompt ? 1 : 0));
  const sessions = await stored();
  const messages = sessions.flatMap((session) => session?.messages ?? []);
  const prompts = messages.filter((message) => message.role === "user" && message.from === undefined);
  assertEquals(prompts.length, before === "Hello." && isPrompt ? 2 : 1);
  assertEquals([sessions.length, sessions[0]?.run], [1, undefined]);
  await time.tickAsync(300_000);
  const { runs, over } = await app.recover();
  await over;
  assertEquals([runs, new Set(ends).size], [[], onEnd ? endsBefore.length + 1 : 0]); // a pause may be reported again, with its id
  return true;
}

for (const [number, [name, start]] of Object.entries(starts).entries()) {
  Deno.test(`${name} that is refused since the store is frozen has begun nothing, and can be repeated`, async () => {
    for (const freeze of number % 3 === 1 ? freezes : (["late", "unanswered"] as const)) {
      let more = 0;
      try {
        while (await refuse(start, { freeze, more, deadline: number % 2 === 0 ? 5_000 : 400 })) more++;
      } catch (cause) {
        throw new Error(`The freeze "${freeze}" after ${more} calls`, { cause });
      }
      assertEquals(more > 0, true);
    }
  });
}

Deno.test("a message that is refused since the store is frozen counts once when it is repeated", async () => {
  for (const freeze of freezes) {
    using time = new FakeTime();
    const frozen = freezingJournal();
    const gate = Promise.withResolvers<string>();
    const wait = tool({ name: "wait", description: "Waits", input: z.object({}), execute: () => gate.promise });
    const model = scripted({ calls: [["wait", {}]] }, "Done.");
    const here = serve(agent({ model, tools: [wait] }), { store: durable(frozen.base) });
    const there = serve(agent({ model: scripted(), tools: [wait] }), { store: durable(frozen.journal), onError() {} });
    const pieces = piecesOf(await post(here, "/runs", { prompt: "Go" }));
    const { run } = first("run.started", framesOf(await pieces.until("tool.started")));
    const send = (text: string) => post(there, `/runs/${run}/messages`, { text });
    const met = frozen.freeze(freeze, 2);
    const sent = send("Faster");
    await met;
    await advance(time, 5_000);
    assertEquals((await sent).status, 503);
    frozen.thaw();
    await advance(time, 0);
    assertEquals([(await send("Faster")).status, (await send("Faster")).status], [202, 202]);
    gate.resolve("waited");
    await pieces.rest();
    const prompts = (model.requests[1]?.messages ?? []).flatMap((each) => each.role === "user" ? [textOf(each)] : []);
    assertEquals(prompts, ["Go", "Faster", "Faster"], freeze); // the second repetition is another message
  }
});

Deno.test("the key of a request that is refused since the store is frozen is free for another request, and not once its run has begun", async () => {
  for (const freeze of freezes) {
    using time = new FakeTime();
    const frozen = freezingJournal();
    const app = serve(agent({ model: scripted("Done.") }), { store: durable(frozen.journal), onError() {} });
    const met = frozen.freeze(freeze, 0);
    const refused = post(app, "/runs", { prompt: "One" }, key);
    await met;
    await advance(time, 5_000);
    assertEquals((await refused).status, 503);
    frozen.thaw();
    await advance(time, 0);
    assertEquals((await eventsOf(post(app, "/runs", { prompt: "Two" }, key))).at(-1)?.type, "run.finished");
    await app.settled();
    assertEquals((await post(app, "/runs", { prompt: "One" }, key)).status, 409);
  }
});
