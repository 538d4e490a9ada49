/**
 * Values that JSON cannot hold: each is refused where it enters.
 *
 * @module
 */
import {
  agent,
  type AnyTool,
  ask,
  type CallResult,
  type Event,
  type Json,
  memory,
  type Middleware,
  type Model,
  ModelError,
  Pause,
  type Scope,
  serve,
  state,
  textOf,
  tool,
} from "@jizai/jizai";
import { asTool } from "@jizai/jizai/subagents";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";
import { resultFields, resultWith, unreadable } from "../support/hostile_values.ts";
import { eventsOf, post } from "../support/requests.ts";

const cycle: { self?: unknown } = {};
cycle.self = cycle;
const nested = (levels: number): unknown => Array.from({ length: levels }).reduce((inner) => [inner], "deep");
const deep = nested(200);
const failing = {
  toJSON() {
    throw new Error("toJSON() failed");
  },
};

const values: Readonly<Record<string, unknown>> = {
  "a BigInt": { n: 1n },
  "a cycle": cycle,
  "deep nesting": deep,
  "a toJSON() that throws": { failing },
  "a nested thenable": { rows: { password: "hunter2", then: () => {} } },
  "a toJSON() that returns a BigInt": { inner: { toJSON: () => 1n } },
};

/** Values that JSON writes as an empty object. */
const emptied: Readonly<Record<string, unknown>> = {
  "a Response": new Response("the page"),
  "a generator": (async function* () {})(),
  "an Error": new Error("No such city"),
  "a nested Map": { cities: [new Map([["Oslo", 1]])] },
  "a Blob": new Blob(["text"]),
};

/** Serves an agent whose tool does something with a value. Returns the events, and the status of a second prompt. */
async function served(execute: AnyTool["execute"], use: readonly Middleware[] = []) {
  const look = tool({ name: "look", description: "", input: z.object({}), execute: execute as () => unknown });
  const fine = tool({ name: "fine", description: "", input: z.object({}), execute: () => "Fine." });
  const model = scripted({ calls: [["look", {}], ["fine", {}]] }, "Done.", "Again.");
  const reported: string[] = [];
  const app = serve(agent({ model, tools: [look, fine], use: [...use] }), {
    store: durable(memory().journal),
    onError: (error) => void reported.push(String(error)),
    session: () => "s",
  });
  const events = await eventsOf(post(app, "/runs", { prompt: "Go" }));
  const next = await eventsOf(post(app, "/runs", { prompt: "Go" }));
  return { events, next: next.at(-1)?.type, reported };
}

function resultsIn(events: readonly Event[]): readonly CallResult["status"][] {
  return events.flatMap((event) => event.type === "tool.finished" ? [event.result.status] : []);
}

/** The ways in which a tool gives a value to the model, and those in which it gives it to the client. */
const toModel: readonly ((value: unknown) => AnyTool["execute"])[] = [
  (value) => () => value,
  (value) => () => ({ type: "result", status: "ok", parts: [], artifacts: [value] }),
];
const toClient: readonly ((value: unknown) => AnyTool["execute"])[] = [
  (value) => (_, { progress }) => progress(value),
  (value) => (_, { emit }) => emit({ type: "data", name: "d", data: value as never }),
];

for (const [name, value] of Object.entries({ ...values, ...emptied })) {
  const ways = name in emptied ? toModel : [...toModel, ...toClient];
  Deno.test(`${name} ${name in emptied ? "in the result" : "from a tool"} is an error of that call only`, async () => {
    for (const execute of ways.map((way) => way(value))) {
      const { events, next } = await served(execute);
      assertEquals(resultsIn(events), ["error", "ok"]);
      assertEquals(events.map(({ id }) => id), events.map((_, index) => index + 1)); // no number is left out
      assertEquals([events.at(-1)?.type, next], ["run.finished", "run.finished"]);
    }
  });

  const uses: readonly (readonly [where: string, use: (at: Scope) => unknown])[] = [
    ["as the initial value of a state", state<unknown>("kept", () => value).get],
    ["in the state", (at) => state<unknown>("kept", () => 0).set(at, value)],
  ];
  for (const [where, use] of uses) {
    Deno.test(`${name} ${where} is refused, and the session is not busy`, async () => {
      const errors: string[] = [];
      const using: Middleware = {
        name: "using",
        tool(ctx, next) {
          try {
            use(ctx);
          } catch (error) {
            errors.push(String(error).slice(0, 37));
          }
          return next();
        },
      };
      const { next } = await served(() => "Seen.", [using]);
      assertEquals(errors, Array(2).fill('TypeError: Cannot set the state "kept'));
      assertEquals(next, "run.finished");
    });
  }
}

for (const [name, value] of Object.entries(values)) {
  Deno.test(`${name} in a question is refused, and denies the call at a guard`, async () => {
    assertThrows(() => new Pause([{ questions: ["Really?"], schema: { value } }]), TypeError, "Cannot pause: it ");
    const guard: Middleware = {
      name: "guard",
      approval: () => Promise.resolve({ type: "ask", questions: ["Really?"], schema: { value } }),
    };
    const { events, next, reported } = await served(() => "Seen.", [guard]);
    assertEquals(resultsIn(events), ["denied", "denied"]);
    const refusal = "TypeError: Cannot use the decision of a guard: it ";
    assertEquals(reported.map((error) => error.slice(0, refusal.length)), [refusal, refusal]); // of both calls
    assertEquals([events.at(-1)?.type, next], ["run.finished", "run.finished"]);
  });
}

Deno.test("what a tool sends to the client may be empty as JSON: it does not fail a call that has had its effect", async () => {
  for (const execute of toClient.map((way) => way({ problem: new Error("Slow") }))) {
    const { events } = await served(execute);
    assertEquals(resultsIn(events), ["ok", "ok"]);
  }
});

Deno.test("the error about a result names the type of an object whose content JSON leaves out", async () => {
  const { reported } = await served(() => ({ page: new Response("the page") }));
  assertEquals(reported, [
    "TypeError: Cannot use the result of a tool: it has a value of type Response, which is {} as JSON; expected plain values",
  ]);
});

Deno.test("a result may contain empty objects and lists, objects of a class, and dates", async () => {
  class City {
    readonly name = "Oslo";
  }
  class Nothing {}
  const value = {
    none: {},
    list: [],
    bare: Object.create(null),
    city: new City(),
    nothing: new Nothing(),
    day: new Date(0),
  };
  const { events } = await served(() => value);
  const [result] = events.flatMap((event) => event.type === "tool.finished" ? [event.result] : []);
  const text = '{"none":{},"list":[],"bare":{},"city":{"name":"Oslo"},"nothing":{},"day":"1970-01-01T00:00:00.000Z"}';
  assertEquals([result?.status, result?.parts], ["ok", [{ type: "text", text }]]);
});

Deno.test("an output that JSON cannot hold fails the run with a clear error, and the session is not busy", async () => {
  const output = z.object({ n: z.string().transform((text) => BigInt(text)) });
  const reported: string[] = [];
  const app = serve(agent({ model: scripted('{"n":"12"}', '{"n":"12"}'), output }), {
    store: durable(memory().journal),
    onError: (error) => void reported.push(String(error)),
    session: () => "s",
  });
  for (let run = 0; run < 2; run++) {
    const events = await eventsOf(post(app, "/runs", { prompt: "Go" }));
    assertEquals(events.at(-1)?.type, "run.failed");
  }
  assertEquals(reported, Array(2).fill("TypeError: Cannot use the structured answer: it has a BigInt"));
});

Deno.test("an output that a hook replaces with a value that JSON cannot hold is left out of the last event", async () => {
  const reported: string[] = [];
  const replacing: Middleware = { name: "replacing", prompt: async (_, next) => ({ ...await next(), output: 1n }) };
  const app = serve(agent({ model: scripted("Done."), use: [replacing] }), {
    store: durable(memory().journal),
    onError: (error) => void reported.push(String(error)),
  });
  const last = (await eventsOf(post(app, "/runs", { prompt: "Go" }))).at(-1);
  assertEquals([last?.type, last && "output" in last], ["run.finished", false]);
  assertEquals(reported, ["TypeError: Cannot emit the output: it has a BigInt"]);
});

Deno.test("a question pauses the run however deep an accepted input or schema is, also in a subagent", async () => {
  const pay = tool({
    name: "pay",
    description: "",
    input: z.object({ of: z.unknown() }),
    ask: true,
    execute: () => "Paid.",
  });
  for (const levels of [90, 96, 97, 98, 99]) {
    const asking: Middleware = {
      name: "asking",
      tool: (_, next) => next({ input: { of: nested(levels) } }),
      approval: () => Promise.resolve(ask("Really?", { schema: { of: nested(levels - 2) as Json } })),
    };
    const model = () => scripted({ calls: [["pay", {}]] }, "Done.");
    const direct = agent({ model: model(), tools: [pay], use: [asking] });
    const calling = scripted({ calls: [["agent", { prompt: "Pay" }]] }, "Done.");
    const above = agent({ model: calling, tools: [asTool(agent({ model: model(), tools: [pay], use: [asking] }))] });
    for (const assistant of [direct, above]) {
      const { status, session, questions } = await assistant.run("Pay").result;
      assertEquals([status, questions.length], ["paused", 1]);
      const answers = questions.map(({ callId }) => ({ callId, type: "approve" } as const));
      assertEquals((await assistant.resume({ session, answers }).result).text, "Done.");
    }
  }
});

/** Runs a tool beside another one, in a session that is saved. Returns the status of the run, the results, and the number of errors. */
async function beside(execute: () => unknown) {
  const errors: unknown[] = [];
  const hostile = tool({ name: "hostile", description: "Misbehaves", input: z.object({}), execute });
  const other = tool({ name: "other", description: "Works", input: z.object({}), execute: () => "Fine." });
  const model = scripted({ calls: [["hostile", {}], ["other", {}]] }, "Done.");
  const { status, messages } = await agent({ model, tools: [hostile, other] }).run({
    prompt: "Go",
    session: "s",
    store: durable(memory().journal),
    onError: (error) => void errors.push(error),
  }).result;
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  return [status, ...results.map((result) => `${result.status} ${textOf(result)}`), errors.length];
}

const failedAlone = ["done", "error hostile failed.", "ok Fine.", 1];

for (const [name, create] of Object.entries(unreadable)) {
  Deno.test(`a tool that throws ${name} fails its call, and not the run`, async () => {
    assertEquals(await beside(() => Promise.reject(create())), failedAlone);
    assertEquals(
      await beside(() => {
        throw create();
      }),
      failedAlone,
    );
  });

  Deno.test(`a hook and a model that throw ${name} fail the run, which ends`, async () => {
    for (const point of ["session", "prompt", "turn", "model", "tool", "stop"] as const) {
      const use: Middleware[] = [{ [point]: () => Promise.reject(create()) }];
      const run = agent({ model: scripted({ calls: [["missing", {}]] }, "Done."), use }).run({
        prompt: "Go",
        onError() {},
      });
      const events = await Array.fromAsync(run.events);
      assertEquals([(await run.result).status, events.at(-1)?.type], ["failed", "run.failed"], point);
    }
    const model: Model = {
      id: "m",
      async *stream() {
        yield [{ type: "text", text: "Half" }];
        throw create();
      },
    };
    assertEquals((await agent({ model }).run({ prompt: "Go", onError() {} }).result).status, "failed");
  });
}

Deno.test("a run that fails with a ModelError whose code cannot be read ends", async () => {
  const error = Object.defineProperty(new ModelError("hidden"), "code", {
    get() {
      throw new Error("The code cannot be read");
    },
  });
  const run = agent({ model: scripted({ error }) }).run({ prompt: "Go", onError() {} });
  const last = (await Array.fromAsync(run.events)).at(-1);
  assertEquals([(await run.result).status, last?.type === "run.failed" && last.code], ["failed", "internal"]);
});

Deno.test("a field of a result that cannot be read, or is of another type, fails its call, and not the run", async () => {
  for (const field of resultFields) {
    assertEquals(await beside(() => resultWith(field)), failedAlone, field);
    for (const value of [1n, { big: 1n }, [1n], cycle, unreadable["a proxy"]?.()]) {
      assertEquals(await beside(() => resultWith(field, value)), failedAlone, field);
    }
  }
  for (
    const [field, value] of [["status", "fine"], ["context", null], ["context", [1]], ["person", {}], ["silent", 1]]
  ) {
    assertEquals(await beside(() => resultWith(String(field), value)), failedAlone, `${field}`);
  }
});

Deno.test("a result that changes after its call does not change what is stored", async () => {
  let reads = 0;
  const part = {
    type: "text",
    get text() {
      return ++reads > 2 ? 1n : "Seen";
    },
  };
  assertEquals(await beside(() => resultWith("parts", [part])), ["done", "ok Seen", "ok Fine.", 0]);
});
