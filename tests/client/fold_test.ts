import type { Event, Session } from "@jizai/jizai";
import { agent, memory, reply, rewrite, serve, tool, windowed } from "@jizai/jizai";
import { type AnswerView, fold, type Frame, noRun, type RunState } from "@jizai/jizai/client";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals, assertStrictEquals } from "@std/assert";
import * as z from "zod";
import { eventsOf, post } from "../support/requests.ts";
import { asTool } from "@jizai/jizai/subagents";

const usage = { input: 3, output: 2 };
const model = { type: "model.started", turn: 1, model: "m" } as const;
const delta = (text: string, part = 0) => ({ type: "text.delta", turn: 1, part, text }) as const;
const thought = (text: string, part = 0) => ({ type: "reasoning.delta", turn: 1, part, text }) as const;
const written = (call: string, text: string) => ({ type: "call.delta", turn: 1, call, name: "look", text }) as const;
const ready = (id: string, input: unknown = {}) =>
  ({ type: "call.ready", turn: 1, call: { id, name: "look", input } }) as const;
const started = (call: string, index = 0) =>
  ({ type: "tool.started", turn: 1, call, name: "look", batch: "b", index }) as const;
const asked = (call: string) => ({ callId: call, tool: "look", input: { at: 1 }, questions: ["Look?"] });
const finished = (call: string, status: "ok" | "denied" | "aborted", text: string) =>
  ({
    type: "tool.finished",
    turn: 1,
    call,
    result: { callId: call, name: "look", status, parts: [{ type: "text", text }] },
  }) as const;

/** Events, numbered after the last one in `state`. */
function after(state: RunState, ...events: readonly Event[]): RunState {
  return events.map((event, index) => ({ id: state.at + 1 + index, event })).reduce(fold, state);
}

const reported = (...events: readonly Event[]) => after(noRun, ...events);

/** Returns the parts of the last message. */
function partsOf({ messages }: RunState): AnswerView["parts"] {
  const last = messages.at(-1);
  return last?.turn ? last.parts : [];
}

Deno.test("fold() begins a run", () => {
  assertEquals(reported({ type: "run.started", run: "r", session: "s", resumed: false }), {
    ...noRun,
    at: 1,
    run: "r",
    session: "s",
    status: "running",
  });
});

Deno.test("fold() keeps the prompt, and the answer of each turn", () => {
  const prompt = { role: "user", parts: [{ type: "text", text: "Hi" }] } as const;
  const state = reported(
    { type: "prompt.accepted", prompt },
    model,
    delta("Hel"),
    delta("lo."),
    { ...model, turn: 2 },
    { ...delta("Bye."), turn: 2 },
  );
  assertEquals(state.messages, [
    prompt,
    { role: "assistant", turn: 1, parts: [{ type: "text", id: 0, text: "Hello." }] },
    { role: "assistant", turn: 2, parts: [{ type: "text", id: 0, text: "Bye." }] },
  ]);
});

Deno.test("fold() separates reasoning from text, and one part from another", () => {
  assertEquals(partsOf(reported(model, thought("Hm"), thought("m."), delta("A", 1), thought("Or", 2), delta("B", 3))), [
    { type: "reasoning", id: 0, text: "Hmm." },
    { type: "text", id: 1, text: "A" },
    { type: "reasoning", id: 2, text: "Or" },
    { type: "text", id: 3, text: "B" },
  ]);
});

Deno.test("fold() ignores a frame that it has already", () => {
  const state = reported(model, delta("Hel"), delta("lo."));
  for (const id of [3, 2, 1, 0, -1]) assertStrictEquals(fold(state, { id, event: delta("lo.") }), state);
});

Deno.test("fold() ignores a frame after a gap, and one without a number", () => {
  const state = reported(model, delta("Hel"));
  for (const id of [4, 100, NaN, 2.5]) assertStrictEquals(fold(state, { id, event: delta("lo.") }), state);
  assertEquals(partsOf(fold(state, { id: 3, event: delta("lo.") })), [{ type: "text", id: 0, text: "Hello." }]);
});

Deno.test("fold() does not change earlier states, and reuses unchanged objects", () => {
  const before = reported(
    { type: "prompt.accepted", prompt: { role: "user", parts: [] } },
    model,
    delta("A"),
    ready("a"),
  );
  const copy = structuredClone(before);
  const next = after(before, delta("B", 2));
  assertEquals(before, copy);
  assertStrictEquals(next.messages[0], before.messages[0]);
  assertStrictEquals(partsOf(next)[0], partsOf(before)[0]);
});

Deno.test("fold() removes the text of an answer that begins again", () => {
  const reset = { type: "model.reset", turn: 1 } as const;
  assertEquals(partsOf(reported(model, delta("Wro"), written("a", "{"), reset)), []);
  assertEquals(partsOf(reported(model, thought("Wro"), reset, delta("Right."))), [{
    type: "text",
    id: 0,
    text: "Right.",
  }]);
});

Deno.test("fold() removes the text of an interrupted turn when it begins again", () => {
  const state = reported(model, delta("Wro"), { type: "run.paused", questions: [{ questions: ["On?"] }], usage });
  const repeated = after(state, { type: "run.started", run: "r", session: "s", resumed: true }, model, delta("Right."));
  assertEquals(repeated.messages.length, 1);
  assertEquals(partsOf(repeated), [{ type: "text", id: 0, text: "Right." }]);
});

Deno.test("fold() replaces the streamed text with the text of a finished answer", () => {
  const end = { type: "model.finished", turn: 1, finish: "stop", usage, attempts: 1 } as const;
  const shown = reported(model, thought("Hm."), delta("Sec", 1), ready("a"), delta("ret", 3));
  assertStrictEquals(partsOf(after(shown, end)), partsOf(shown));
  assertEquals(partsOf(after(shown, { ...end, text: "***" })).map(({ type, text }) => [type, text]), [
    ["reasoning", "Hm."],
    ["text", "***"],
    ["call", ""],
  ]);
  const ids = partsOf(after(shown, { ...end, text: "***" })).map(({ id }) => id);
  assertEquals(new Set(ids).size, ids.length);
  for (const before of [[delta("Sec", 1), thought("Hm.", 2)], [delta("Sec", 0), delta("ret", 2), thought("Hm.", 3)]]) {
    const changed = partsOf(after(reported(model, ...before), { ...end, text: "***" }));
    assertEquals(changed.map(({ type, id }) => [type, id]), [
      ["reasoning", before.length],
      ["text", before.length + 1],
    ]);
  }
  const released = after(reported(model, thought("Hm.", 1), delta("Sec", 0)), { ...end, text: "***" }); // held back until after the thought
  assertEquals(partsOf(released).map(({ type, id }) => [type, id]), [["reasoning", 1], ["text", 2]]);
  assertEquals(partsOf(reported(model, { ...end, text: "Cached." })), [{ type: "text", id: 0, text: "Cached." }]);
});

Deno.test("fold() follows a call from its first delta to its result", () => {
  const states = [
    [written("a", '{"at"'), { status: "writing", text: '{"at"' }],
    [written("a", ":1}"), { text: '{"at":1}' }],
    [ready("a", { at: 1 }), { status: "ready", input: { at: 1 } }],
    [started("a"), { status: "started", batch: "b", index: 0 }],
    [{ type: "approval.asked", turn: 1, call: "a", ...asked("a") }, { status: "asked", ...asked("a") }],
    [
      { type: "approval.decided", turn: 1, call: "a", decision: "allow", by: "person" },
      { status: "decided", decision: "allow", by: "person" },
    ],
    [{ type: "tool.progress", turn: 1, call: "a", data: 50 }, { status: "running", data: 50 }],
    [finished("a", "ok", "seen"), { status: "ok", parts: [{ type: "text", text: "seen" }] }],
  ] as const;
  let state = reported(model);
  let expected: object = { type: "call", id: "a", name: "look" };
  for (const [event, change] of states) {
    state = after(state, event);
    expected = { ...expected, ...change };
    assertEquals(partsOf(state), [expected as AnswerView["parts"][number]]); // as built in the test
  }
});

Deno.test("fold() adds a call whose input was not streamed", () => {
  assertEquals(partsOf(reported(model, started("a"), finished("a", "ok", "seen"))), [{
    type: "call",
    id: "a",
    name: "look",
    status: "ok",
    text: "",
    batch: "b",
    index: 0,
    callId: "a",
    parts: [{ type: "text", text: "seen" }],
  }]);
});

Deno.test("fold() keeps the reason why the input of a call is malformed", () => {
  const event: Event = {
    type: "call.ready",
    turn: 1,
    call: { id: "a", name: "look", input: "{", malformed: "not JSON" },
  };
  const [call] = partsOf(reported(model, event));
  assertEquals(call?.type === "call" && [call.input, call.malformed], ["{", "not JSON"]);
});

Deno.test("fold() separates parallel calls, in the order in which they were complete", () => {
  const state = reported(
    model,
    delta("Look:"),
    ...[written("a", "{"), written("b", "["), written("a", "}"), written("b", "]"), ready("b"), ready("a")],
    ...[started("a", 0), started("b", 1), finished("b", "ok", "B"), finished("a", "denied", "No.")],
  );
  const seen = partsOf(state).map((part) =>
    part.type === "call" ? [part.id, part.text, part.status, part.index, part.parts] : part.text
  );
  assertEquals(seen, [
    "Look:",
    ["b", "[]", "ok", 1, [{ type: "text", text: "B" }]],
    ["a", "{}", "denied", 0, [{ type: "text", text: "No." }]],
  ]);
});

Deno.test("fold() keeps the questions of a paused run until it is resumed", () => {
  const question = asked("a");
  const paused = reported(model, started("a"), { type: "run.paused", questions: [question], usage });
  assertEquals([paused.status, paused.questions, paused.usage], ["paused", [question], usage]);
  const resumed = after(paused, { type: "run.started", run: "r", session: "s", resumed: true });
  assertEquals([resumed.status, resumed.questions], ["running", []]);
  assertEquals(resumed.messages, paused.messages);
});

Deno.test("fold() keeps the end of a run", () => {
  const ended = (event: Event) => {
    const { at: _at, messages: _messages, questions: _questions, ...end } = reported(model, event);
    return end;
  };
  assertEquals(ended({ type: "run.finished", status: "done", text: "{}", output: {}, usage }), {
    status: "done",
    text: "{}",
    output: {},
    usage,
  });
  assertEquals(ended({ type: "run.finished", status: "limit", text: "A", reason: "turns", usage }), {
    status: "limit",
    text: "A",
    reason: "turns",
    usage,
  });
  assertEquals(ended({ type: "run.finished", status: "cancelled", text: "", reason: "empty", usage }), {
    status: "cancelled",
    text: "",
    reason: "empty",
    usage,
  });
  assertEquals(ended({ type: "run.failed", error: "e1", message: "The run failed.", code: "internal", usage }), {
    status: "failed",
    error: "e1",
    message: "The run failed.",
    code: "internal",
    usage,
  });
  assertEquals(ended({ type: "run.aborted", reason: "stop", text: "Hel", usage }), {
    status: "aborted",
    reason: "stop",
    text: "Hel",
    usage,
  });
});

Deno.test("fold() removes the questions of an aborted run, and keeps its partial answer", () => {
  const paused = reported(model, delta("Hel"), started("a"), { type: "run.paused", questions: [asked("a")], usage });
  const state = after(paused, finished("a", "aborted", "Stopped."), {
    type: "run.aborted",
    reason: "stop",
    text: "Hel",
    usage,
  });
  assertEquals([state.status, state.questions], ["aborted", []]);
  assertEquals(partsOf(state).map((part) => part.type === "call" ? part.status : part.text), ["Hel", "aborted"]);
});

Deno.test("fold() keeps the state of a subagent over a pause, and begins again with another run", () => {
  const inside = (event: Event): Event => ({ type: "subagent.event", call: "a", agent: "child", event });
  const begin: Event = { type: "subagent.started", call: "a", agent: "child", run: "c" };
  const state = reported(
    ...[model, started("a"), started("b"), begin, { ...begin, call: "b", run: "d" }],
    ...[inside({ type: "run.started", run: "c", session: "cs", resumed: false }), inside(model), inside(delta("Deep"))],
    inside({ type: "subagent.event", call: "x", agent: "deeper", event: delta("lost") }),
    inside({ type: "run.finished", status: "done", text: "Deep", usage }),
    { type: "subagent.finished", call: "a", agent: "child", status: "done" },
  );
  const [a, b] = partsOf(state);
  assertEquals(a?.type === "call" && [a.status, a.child], ["started", {
    at: 5,
    run: "c",
    session: "cs",
    status: "done",
    messages: [{ role: "assistant", turn: 1, parts: [{ type: "text", id: 0, text: "Deep" }] }],
    questions: [],
    text: "Deep",
    usage,
  }]);
  assertEquals(b?.type === "call" && b.child, noRun);
  const [resumed] = partsOf(after(state, begin));
  assertEquals(resumed, a);
  const [repeated] = partsOf(after(state, { ...begin, run: "e" }));
  assertEquals(repeated?.type === "call" && repeated.child, noRun);
});

Deno.test("fold() keeps a steering message at its place", () => {
  const blue = { role: "user", parts: [{ type: "text", text: "In blue" }] } as const;
  const red = { role: "user", parts: [{ type: "text", text: "Or red" }] } as const;
  const state = reported(
    model,
    delta("One."),
    started("a"),
    finished("a", "ok", "A"),
    { type: "steering.injected", messages: [blue, red] },
    { ...model, turn: 2 },
    { ...delta("Two."), turn: 2 },
  );
  assertEquals(state.messages.map((message) => message.turn ?? message), [1, blue, red, 2]);
  assertEquals(partsOf(state), [{ type: "text", id: 0, text: "Two." }]);
});

Deno.test("fold() counts events that do not change the conversation, and unknown events", () => {
  const unknown = { type: "tomorrow.invented", turn: 1 } as never;
  const kinds = {
    "session.opened": { type: "session.opened", source: "new" },
    "session.closed": { type: "session.closed" },
    "turn.started": { type: "turn.started", turn: 1 },
    "turn.finished": { type: "turn.finished", turn: 1 },
    "output.delta": { type: "output.delta", turn: 1, changes: [{ path: [], value: {} }] },
    "notice": { type: "notice", text: "Careful." },
    "data": { type: "data", name: "n", data: 1 },
    "warning": { type: "warning", code: "hook.failed", message: "A hook failed." },
    "compact.started": { type: "compact.started", trigger: "auto" },
    "compact.finished": { type: "compact.finished", trigger: "auto", status: "compacted", before: 2, after: 1 },
    "subagent.finished": { type: "subagent.finished", call: "a", agent: "child", status: "done" },
    "file.changed": { type: "file.changed", path: "a.md", change: "add" },
    "cwd.changed": { type: "cwd.changed", turn: 1, call: "a", from: "", to: "docs" },
    "instructions.loaded": { type: "instructions.loaded", path: "AGENTS.md", reason: "session" },
    "steering.interrupted": { type: "steering.interrupted" },
    "hook.acted": { type: "hook.acted", middleware: "m", point: "tool", did: ["passed"], ms: 1 },
  } satisfies { readonly [T in Exclude<Event["type"], Shown>]: Extract<Event, { type: T }> };
  const state = reported(model, delta("A"), started("a"));
  for (const event of [...Object.values(kinds), unknown]) {
    assertEquals(after(state, event), { ...state, at: state.at + 1 });
  }
});

/** The event types that the tests above cover. */
type Shown =
  | `run.${string}`
  | `text.${string}`
  | `reasoning.${string}`
  | `call.${string}`
  | `tool.${string}`
  | `provider_tool.${string}`
  | `model.${string}`
  | `approval.${string}`
  | "part.added"
  | "prompt.accepted"
  | "steering.injected"
  | "subagent.started"
  | "subagent.event";

Deno.test("fold() ignores an event of a message that does not exist", () => {
  for (const event of [delta("A"), ready("a"), finished("a", "ok", "A")]) {
    assertEquals(reported(event), { ...noRun, at: 1 });
  }
});

Deno.test("fold() reaches the same messages as the transcript", async () => {
  const look = tool({
    name: "look",
    description: "Looks",
    input: z.object({ at: z.number() }),
    execute: ({ at }) => `Found ${at}.`,
  });
  const child = agent({ name: "child", model: scripted({ text: ["De", "ep."] }) });
  const script = scripted(
    {
      reasoning: ["H", "m."],
      text: ["Secr", "et: 1."],
      calls: [["look", { at: 1 }], ["look", "{"], ["deep", { prompt: "Go" }]],
    },
    { text: "Wrong", error: new Error("cut") },
    { text: "Done." },
  );
  const store = memory();
  const app = serve(
    agent({
      model: script,
      tools: [look, asTool(child, { name: "deep", description: "Goes deep" })],
      use: [
        { name: "mask", model: rewrite({ text: windowed(8, (text) => text.replaceAll("Secret", "***")) }) },
        {
          name: "again",
          async model(_, next) {
            try {
              return await next();
            } catch {
              return await next();
            }
          },
        },
        { name: "cache", model: (ctx, next) => ctx.turn === 3 ? Promise.resolve(reply("Never.")) : next() },
      ],
    }),
    { store },
  );
  const frames = (await eventsOf(post(app, "/runs", { prompt: "Go" }))).map(({ id, ...event }): Frame => ({
    id,
    event,
  }));
  const state = frames.reduce(fold, noRun);
  assertEquals(spoken(state), transcribed(await store.load(state.session ?? "")));
  assertEquals([state.status, state.text], ["done", "Done."]);
  const deep = state.messages.flatMap((message) => message.turn ? message.parts : [])
    .find((part) => part.type === "call" && part.child);
  assertEquals(deep?.type === "call" && deep.child?.text, "Deep.");
});

/** Returns the messages of a state, one by one. */
function spoken({ messages }: RunState): unknown[] {
  return messages.map((message) => {
    if (message.role === "user") return message.parts;
    return message.parts.map((part) =>
      part.type === "call" ? [part.name, part.input, part.status, part.parts] : part.text
    );
  });
}

/** Returns the messages of a session in the same form. */
function transcribed(session: Session | undefined): unknown[] {
  const messages = session?.messages ?? [];
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  return messages.filter(({ role }) => role !== "tool").map((message) => {
    if (message.role !== "assistant") return "parts" in message && message.parts;
    return message.parts.map((part) => {
      if (part.type !== "call") return "text" in part ? part.text : part.type;
      const { status, parts } = results.find(({ callId }) => callId === part.id) ?? {};
      return [part.name, part.input, status, parts];
    });
  });
}
