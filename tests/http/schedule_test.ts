import { agent, type Model, serve, type ServedApp, type ServeOptions, textOf, vars } from "@jizai/jizai";
import type { ServerFact } from "@jizai/jizai/facts";
import { type RegisterCron, type Schedule, schedule, type ScheduledPrompt } from "@jizai/jizai/schedule";
import { durable } from "@jizai/jizai/session/durable";
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import { failingAppends } from "../support/events_journal.ts";
import { advance, advanceUntilSettled, hashAtOnce } from "../support/fake_time.ts";
import { halting, waiting } from "../support/halting.ts";
import { processOf, type Shared, shared } from "../support/process.ts";
import { framesOf, piecesOf, post } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";
import { seeded, seeds, withSeed } from "../support/seeded.ts";

const before = "2026-11-27T06:59:30Z";
const minute = 60_000;

/** A model that answers each prompt, and the prompts that it has received. */
function answering(): { readonly model: Model; readonly prompts: string[] } {
  const prompts: string[] = [];
  const model: Model = {
    id: "answering",
    async *stream({ messages }) {
      prompts.push(messages.flatMap((message) => message.role === "user" ? [textOf(message)] : []).at(-1) ?? "");
      yield [{ type: "text", text: "Done." }, { type: "finish", reason: "stop" }];
    },
  };
  return { model, prompts };
}

const at: ScheduledPrompt["prompt"] = ({ time }) => `at ${time.toISOString().slice(11, 16)}`;

const report = (change: Partial<ScheduledPrompt> = {}): ScheduledPrompt => ({
  name: "report",
  cron: "0 7 * * *",
  prompt: at,
  ...change,
});

/** The errors that a server reports, and its schedules. */
function serving(model: Model, schedules: readonly Schedule[], options: ServeOptions = {}) {
  const closing = new AbortController();
  const errors: string[] = [];
  const onError = (error: unknown) => void errors.push(error instanceof Error ? error.message : String(error));
  const app = serve(agent({ model }), { signal: closing.signal, onError, ...options });
  return { app, closing, errors, schedules: schedule(app, schedules) };
}

/** Ends a server, and waits for its runs. */
async function close(time: FakeTime, { app, closing }: { app: ServedApp; closing: AbortController }): Promise<void> {
  closing.abort();
  await advanceUntilSettled(time, app.settled());
}

Deno.test("schedule() runs its prompt at each time in a process that lives, until the server shuts down", async () => {
  using time = new FakeTime(before);
  using _hash = hashAtOnce();
  const { model, prompts } = answering();
  const served = serving(model, [report({ cron: "0,1 7 * * *" })]);
  served.schedules.start();
  await advance(time, 29_000);
  assertEquals(prompts, []);
  await advance(time, 2_000);
  assertEquals(prompts, ["at 07:00"]);
  await advance(time, 2 * minute);
  assertEquals(prompts, ["at 07:00", "at 07:01"]);
  await close(time, served);
  await advance(time, 2_000);
  assertEquals([time.next(), served.errors], [false, []]);
});

/** Calls the jobs that are registered, as Deno does. */
function fakeCron() {
  const jobs: {
    readonly name: string;
    readonly cron: string;
    run(): Promise<void>;
    signal: AbortSignal | undefined;
  }[] = [];
  const register: RegisterCron = (name, cron, { signal }, run) => {
    jobs.push({ name, cron, run, signal });
    return Promise.resolve();
  };
  return { jobs, register };
}

Deno.test("schedule() registers each schedule with Deno.cron, whose job ends with its run", async () => {
  using time = new FakeTime("2026-11-27T07:00:59Z");
  using _hash = hashAtOnce();
  const { model, begun, release } = halting();
  const served = serving(model, [report(), { name: "recover", cron: "* * * * *", recover: true }]);
  const { jobs, register } = fakeCron();
  served.schedules.register(register);
  assertEquals(jobs.map(({ name, cron, signal }) => [name, cron, signal === served.closing.signal]), [
    ["report", "0 7 * * *", true],
    ["recover", "* * * * *", true],
  ]);
  let isOver = false;
  const job = jobs[0]?.run().then(() => void (isOver = true));
  await begun;
  await advance(time, 2_000);
  assertEquals(isOver, false);
  release();
  await advanceUntilSettled(time, job ?? Promise.reject());
  assertEquals([isOver, served.errors], [true, []]);
});

Deno.test("schedule() takes a job of Deno.cron for the time that is nearest before, or a few seconds after", async () => {
  using time = new FakeTime("2026-11-27T06:59:55.001Z");
  using _hash = hashAtOnce();
  const { model, prompts } = answering();
  const { jobs, register } = fakeCron();
  serving(model, [report({ cron: "*/30 * * * *" })]).schedules.register(register);
  for (const ms of [0, 20_000, 29 * minute, minute]) {
    time.tick(ms);
    await advanceUntilSettled(time, jobs[0]?.run() ?? Promise.reject());
  }
  assertEquals(prompts, ["at 07:00", "at 07:30"]);
});

Deno.test("schedule() reports a schedule that Deno.cron refuses", async () => {
  const served = serving(answering().model, [report()]);
  served.schedules.register(() => Promise.reject(new Error("Invalid cron schedule")));
  await Promise.resolve();
  assertEquals(served.errors, ["Invalid cron schedule"]);
});

Deno.test("schedule() handles the cron triggers of Cloudflare Workers, which are delivered at least once", async () => {
  const { model, prompts } = answering();
  const { schedules, app } = serving(model, [
    report(),
    report({ name: "second", prompt: "also" }),
    report({ name: "other", cron: "5 7 * * *" }),
  ]);
  const trigger = { cron: "0 7  * * *", scheduledTime: Date.parse("2026-11-27T07:00Z") };
  const { scheduled } = schedules;
  await Promise.all([scheduled(trigger), scheduled(trigger)]);
  await scheduled(trigger);
  assertEquals([prompts.toSorted(), app.stats().runs], [["also", "at 07:00"], 0]);
  await scheduled({ ...trigger, scheduledTime: Date.parse("2026-11-28T07:00Z") });
  assertEquals(prompts.length, 4);
  await assertRejects(
    () => scheduled({ ...trigger, cron: "1 7 * * *" }),
    TypeError,
    'Cannot run the schedule of the trigger "1 7 * * *": expected one of "0 7 * * *", "0 7 * * *", "5 7 * * *"',
  );
});

/** Starts the schedules of a process. It dies with its append number `fatal`, before or after that is stored. */
function scheduling(among: Shared, model: Model, schedules: readonly Schedule[], fatal?: number, isStored = false) {
  const closing = new AbortController();
  const { journal } = among.store;
  let appends = 0;
  const store = durable({
    ...journal,
    async append(...given) {
      if (++appends !== fatal) return await journal.append(...given);
      process.kill();
      return isStored ? await journal.append(...given) : undefined;
    },
  });
  const process = processOf({ store }, agent({ model }), {
    signal: closing.signal,
    lease: 10_000,
    onError() {}, // a process that is dead reports that its store does not answer
  });
  schedule(process.app, schedules).start();
  return { ...process, closing };
}

/** Returns a line for each session of a store: its messages. */
async function sessionsOf({ store }: Shared): Promise<string[]> {
  const sessions = await Promise.all((await store.list()).map((id) => store.load(id)));
  return sessions.map((session) => lines(session?.messages ?? []).join(", ")).toSorted();
}

const recover = { name: "recover", cron: "* * * * *", recover: true } as const;

Deno.test("schedule() begins one run per time over all processes, also if some of them die at any moment", async () => {
  for (const seed of seeds(15)) {
    await withSeed(seed, async () => {
      using time = new FakeTime("2026-11-27T06:59:58Z");
      const chance = seeded(seed);
      using _hash = hashAtOnce();
      using _random = stub(Math, "random", () => chance.below(1_000) / chance.one([1_000, 1_000_000])); // apart, or together
      const among = shared();
      const { model, prompts } = answering();
      const fatal = [1 + chance.below(20), 1 + chance.below(20), undefined];
      const all = fatal.map((count) =>
        scheduling(among, model, [report({ cron: "0-4/2 7 * * *" }), recover], count, chance.below(2) === 1)
      );
      await advance(time, 8 * minute); // also a run that dies twice is over
      const times = ["at 07:00", "at 07:02", "at 07:04"];
      assertEquals(await sessionsOf(among), times.map((prompt) => `user ${prompt}, assistant Done.`));
      assertEquals([...new Set(prompts)].toSorted(), times); // a recovered run asks the model again
      for (const { closing } of all) closing.abort();
    });
  }
});

/** A clock that a test moves by `moved` milliseconds, as sleep and a change of the time of day do: no timer fires meanwhile. */
function movedClock(): Disposable & { moved: number } {
  const { Date: fake } = globalThis;
  const now = () => fake.now() + clock.moved;
  const clock = {
    moved: 0,
    [Symbol.dispose]: () => void (globalThis.Date = fake),
  };
  globalThis.Date = new Proxy(fake, {
    get: (date, key, receiver) => key === "now" ? now : Reflect.get(date, key, receiver),
  });
  return clock;
}

Deno.test("schedule() makes up for the last time that a process slept through, and for no time twice", async () => {
  using time = new FakeTime("2026-11-27T06:30:00Z");
  using clock = movedClock();
  using _hash = hashAtOnce();
  const { model, prompts } = answering();
  const served = serving(model, [report({ cron: "0 * * * *" }), report({ name: "daily", cron: "45 6 * * *" })]);
  served.schedules.start();
  await advance(time, minute);
  clock.moved = 3 * 60 * minute; // 09:31
  await advance(time, minute);
  assertEquals(prompts, ["at 09:00", "at 06:45"]);
  clock.moved = 0; // the clock is set back, to 06:32
  await advance(time, 29 * minute);
  assertEquals(prompts, ["at 09:00", "at 06:45", "at 07:00"]); // 06:45 has run
  clock.moved = 2 * 1_440 * minute; // the last time of "daily" is older than the keys that are kept
  await advance(time, minute);
  assertEquals(prompts.slice(3), ["at 07:00", "at 06:45"]);
  await close(time, served);
});

Deno.test("schedule() leaves out a time that a process slept through for longer than keys are kept", async () => {
  using time = new FakeTime("2026-11-27T06:59:00Z");
  using clock = movedClock();
  using _hash = hashAtOnce();
  const { model, prompts } = answering();
  const served = serving(model, [report()], { events: { keep: 60 * minute } });
  served.schedules.start();
  clock.moved = 62 * minute;
  await advance(time, 2 * minute);
  assertEquals([prompts, served.errors], [[], []]);
  await close(time, served);
});

Deno.test("schedule() makes up for a time before the start of its process, if the store knows whether it has run", async () => {
  using time = new FakeTime("2026-11-27T07:04:00Z");
  using _hash = hashAtOnce();
  const { model, prompts } = answering();
  const inMemory = serving(model, [report()]);
  inMemory.schedules.start();
  await advance(time, 2_000);
  assertEquals(prompts, []);
  const { store } = shared();
  for (let restarts = 0; restarts < 2; restarts++) {
    const served = serving(model, [report(), report({ name: "old", cron: "58 6 * * *" })], { store });
    served.schedules.start();
    await advance(time, 2_000);
    await close(time, served);
  }
  assertEquals(prompts, ["at 07:00"]);
  await close(time, inMemory);
});

Deno.test("schedule() tries again while the server has no room, and runs the time once", async () => {
  using time = new FakeTime(before);
  using _hash = hashAtOnce();
  const facts: ServerFact[] = [];
  const { model, release } = halting();
  const served = serving(model, [report()], {
    capacity: { runs: 1 },
    onClientGone: "detach",
    observe: (fact) => void facts.push(fact),
  });
  const pieces = piecesOf(await post(served.app, "/runs", { prompt: "Hi" }));
  await pieces.until("One.");
  served.schedules.start();
  await advance(time, 35_000);
  const refused = facts.filter(({ type }) => type === "request.refused");
  assertEquals(refused.slice(0, 1), [{ type: "request.refused", route: "schedule", status: 503, code: "capacity" }]);
  release();
  framesOf(await pieces.rest());
  await advance(time, 30_000);
  assertEquals(facts.filter(({ type }) => type === "run.started").length, 2);
  assertEquals(served.errors, []);
  await close(time, served);
});

for (
  const [cron, end] of [["0 7 * * *", "07:05"], ["*/2 7 * * *", "07:02"]] as const
) {
  Deno.test(`schedule() reports a run of "${cron}" that could not begin until ${end}`, async () => {
    using time = new FakeTime(before);
    using _hash = hashAtOnce();
    let tries = 0;
    const reports: string[] = [];
    const served = serving(answering().model, [report({
      cron,
      prompt() {
        tries++;
        throw new Error("no figures");
      },
    })], {
      onError: (error) => void reports.push(`${new Date().toISOString().slice(11, 16)} ${(error as Error).message}`),
    });
    served.schedules.start();
    await advance(time, Date.parse(`2026-11-27T${end}:10Z`) - Date.now());
    const [reported = "", ...more] = reports;
    assertEquals([reported.slice(6), more, tries > 5], [
      'Cannot run schedule "report" at 2026-11-27T07:00:00.000Z: no figures',
      [],
      true,
    ]);
    assertEquals(reported.slice(0, 5) < end, true);
    await close(time, served);
  });
}

Deno.test("schedule() begins the run once a store that fails is back, with the same key", async () => {
  using time = new FakeTime(before);
  using _hash = hashAtOnce();
  let isDown = true;
  const among = shared();
  const { model, prompts } = answering();
  const errors: unknown[] = [];
  const { app, closing } = (() => {
    const closing = new AbortController();
    const store = durable(failingAppends(among.store, () => isDown));
    const app = serve(agent({ model }), { store, signal: closing.signal, onError: (error) => void errors.push(error) });
    schedule(app, [report()]).start();
    return { app, closing };
  })();
  await advance(time, 60_000);
  assertEquals(prompts, []);
  isDown = false;
  await advance(time, 60_000);
  assertEquals(prompts, ["at 07:00"]);
  assertEquals(await sessionsOf(among), ["user at 07:00, assistant Done."]);
  await close(time, { app, closing });
});

for (
  const [busy, expected] of [
    ["refuse", "user at 07:00, assistant One. Two."],
    ["queue", "user at 07:00, assistant One. Two., user at 07:01, assistant One. Two."],
    ["replace", "user at 07:00, assistant One., user at 07:01, assistant One. Two."],
  ] as const
) {
  Deno.test(`schedule() with busy "${busy}" and a session whose run still works`, async () => {
    using time = new FakeTime(before);
    using _hash = hashAtOnce();
    const among = shared();
    const { model, release } = halting();
    const served = serving(model, [report({ cron: "0,1 7 * * *", session: "s", busy })], among);
    served.schedules.start();
    await advance(time, 95_000);
    release();
    await advance(time, 10_000);
    assertEquals([await sessionsOf(among), served.errors], [[expected], []]);
    await close(time, served);
  });
}

Deno.test("schedule() begins runs with sessions of their own beside each other", async () => {
  using time = new FakeTime(before);
  using _hash = hashAtOnce();
  const served = serving(waiting(), [report({ cron: "0,1 7 * * *" })]);
  served.schedules.start();
  await advance(time, 95_000);
  assertEquals(served.app.stats().runs, 2);
  await close(time, served);
});

Deno.test("schedule() runs for its owner, with the vars of recoveryVars, and reports the end", async () => {
  using time = new FakeTime(before);
  using _hash = hashAtOnce();
  const closing = new AbortController();
  const seen: unknown[] = [];
  const ends: unknown[] = [];
  const assistant = agent({
    vars: vars<{ readonly user: string }>(),
    model: answering().model,
    use: [{
      name: "seen",
      async session({ vars, run, session }, next) {
        seen.push({ vars, run, session });
        return await next();
      },
    }],
  });
  const asked: unknown[] = [];
  const { store } = shared();
  const app = serve(assistant, {
    store,
    owner: (c) => c.req.header("x-user"),
    vars: () => ({ user: "client" }),
    recoveryVars(run) {
      asked.push(run);
      return { user: `scheduled for ${run.owner}` };
    },
    onEnd: ({ run, owner, event }) => void ends.push({ run, owner, type: event.type }),
    signal: closing.signal,
  });
  schedule(app, [report({ owner: "ann" })]).start();
  await advance(time, 35_000);
  const [session = ""] = await store.list({ owner: "ann" });
  const stored = await store.load(session, { owner: "ann" });
  const { run } = (asked[0] ?? {}) as { readonly run: string };
  assertEquals(asked, [{ run, session, owner: "ann" }]);
  assertEquals(ends, [{ run, owner: "ann", type: "run.finished" }]);
  assertEquals(lines(stored?.messages ?? []), ["user at 07:00", "assistant Done."]);
  assertEquals(JSON.stringify(seen).includes('"user":"scheduled for ann"'), true);
  await close(time, { app, closing });
});

Deno.test("schedule() with `recover` continues a run whose process died, and reports if it cannot", async () => {
  using time = new FakeTime(before);
  using _hash = hashAtOnce();
  const among = shared();
  const dead = processOf(among, agent({ model: waiting("Half") }), { onError() {} });
  await piecesOf(await post(dead.app, "/runs", { prompt: "Hi" })).until("Half");
  dead.kill();
  const served = serving(answering().model, [recover], among);
  served.schedules.start();
  await advance(time, 95_000);
  assertEquals(await sessionsOf(among), ["user Hi, assistant Done."]);
  await close(time, served);
  const failing = stub(served.app, "recover", () => Promise.reject(new Error("no database")));
  await served.schedules.scheduled({ cron: recover.cron, scheduledTime: Date.now() });
  assertEquals([failing.calls.length, served.errors], [1, [
    'Cannot run schedule "recover" at 2026-11-27T07:01:00.000Z: no database',
  ]]);
});

Deno.test("a client cannot use the key of a schedule", async () => {
  using time = new FakeTime(before);
  using _hash = hashAtOnce();
  const { model, prompts } = answering();
  const served = serving(model, [report()]);
  for (const key of ["report 2026-11-27T07:00:00.000Z", "0report 2026-11-27T07:00:00.000Z"]) {
    await (await post(served.app, "/runs", { prompt: "Hi" }, { "idempotency-key": key })).text();
  }
  assertThrows(() => new Headers({ "idempotency-key": "\0report 2026-11-27T07:00:00.000Z" }), TypeError);
  served.schedules.start();
  await advance(time, 35_000);
  assertEquals(prompts, ["Hi", "Hi", "at 07:00"]);
  await close(time, served);
});

Deno.test("schedule() reports a prompt that is no text", async () => {
  using time = new FakeTime("2026-11-27T07:00:00Z");
  using _hash = hashAtOnce();
  const served = serving(answering().model, [report({ prompt: () => JSON.parse("7") })]);
  const trigger = { cron: "0 7 * * *", scheduledTime: time.now };
  await advanceUntilSettled(time, served.schedules.scheduled(trigger));
  const reason = "its `prompt` has returned number; expected a text";
  assertEquals(served.errors, [`Cannot run schedule "report" at 2026-11-27T07:00:00.000Z: ${reason}`]);
});

const plain = { model: answering().model };
const app = serve(agent(plain));
const ownedApp = serve(agent(plain), { owner: () => "ann" });

for (
  const [message, from, schedules] of [
    ["Cannot schedule: expected the app that serve() returns", new Map(), []],
    ["Cannot schedule: expected a list of schedules", app, report()],
    ["Cannot schedule: got Undefined; expected an object with name, cron", app, [undefined]],
    ['Cannot schedule "": expected a name of 1 to 64 letters, digits, spaces, - and _', app, [report({ name: "" })]],
    [
      'Cannot schedule "a/b": expected a name of 1 to 64 letters, digits, spaces, - and _',
      app,
      [report({ name: "a/b" })],
    ],
    ['Cannot schedule "report": another schedule has this name', app, [report(), report()]],
    ['Cannot schedule "report": `cron` is "daily"; expected minute, hour', app, [report({ cron: "daily" })]],
    [
      'Cannot schedule "a": expected a `prompt`, a text or a function, or `recover: true`',
      app,
      [{ name: "a", cron: "* * * * *" }],
    ],
    ['Cannot schedule "a": `recover` is false; expected true', app, [{ ...recover, name: "a", recover: false }]],
    ['Cannot schedule "a" with `recover`: there is no option "prompt"', app, [{ ...recover, name: "a", prompt: "Hi" }]],
    ['Cannot schedule: there is no option "sesion"', app, [{ ...report(), sesion: "s" }]],
    ['Cannot schedule "report": `session` is ""; expected the id', app, [report({ session: "" })]],
    ['Cannot schedule "report": expected an `owner`, since its server has owners', ownedApp, [report()]],
    ['Cannot schedule "report": expected no `owner`, since its server has none', app, [report({ owner: "ann" })]],
    ['Cannot schedule "report": `busy` is skip; expected refuse, queue, replace', app, [{ ...report(), busy: "skip" }]],
    [
      "Cannot schedule: the vars are made from requests; expected the option recoveryVars",
      serve(agent(plain), { vars: () => ({}) }),
      [report()],
    ],
  ] as const
) {
  Deno.test(`schedule() is refused: ${message}`, () => {
    // programs without types pass such values
    assertThrows(() => schedule(from as typeof app, schedules as unknown as Schedule[]), TypeError, message);
  });
}
