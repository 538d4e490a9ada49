/**
 * Every text field of the outputs, enumerated from their types: `redact()` masks each one, except for those that are listed here.
 *
 * A new event, field or position does not compile until its sample contains it, and then its fields must be masked or listed.
 *
 * @module
 */
import {
  agent,
  type AnswerPart,
  type ContentPart,
  type Event,
  type Message,
  type Middleware,
  type PersonAnswer,
  type Question,
  type RunResult,
  type Session,
  tool,
  type ToolResult,
} from "@jizai/jizai";
import type { AuditRecord } from "@jizai/jizai/middleware/audit";
import { audit } from "@jizai/jizai/middleware/audit";
import type { CallRecord, InnerCalls, Mail, Position, SavedApproval } from "@jizai/jizai/engine";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";

/** A value whose optional fields are all there. */
type Complete<T> = unknown extends T ? T
  : T extends string | number | boolean | null ? T
  : T extends readonly (infer E)[] ? readonly Complete<E>[]
  : T extends object ? { [K in keyof T]-?: Complete<Exclude<T[K], undefined>> }
  : T;

/** One complete value for each alternative of a union. */
type ByKey<T, K extends keyof T> = { readonly [V in T[K] & string]: Complete<Extract<T, { readonly [_ in K]: V }>> };

const secret = "hunter2";
const json = { [secret]: [secret] };

const contents: ByKey<ContentPart, "type"> = {
  text: { type: "text", text: secret },
  media: { type: "media", mediaType: secret, data: secret, url: secret, meta: secret },
};
const answers: ByKey<AnswerPart, "type"> = {
  text: { type: "text", text: secret },
  reasoning: { type: "reasoning", text: secret, meta: secret },
  call: { type: "call", id: secret, name: secret, input: json, malformed: secret, incomplete: true },
  media: contents.media,
  source: { type: "source", url: secret, title: secret, text: secret },
  refusal: { type: "refusal", text: secret, category: secret },
  logprobs: {
    type: "logprobs",
    tokens: [{ token: secret, logprob: 1, top: [{ token: secret, logprob: 1, top: [] }] }],
  },
  provider_call: {
    type: "provider_call",
    callId: secret,
    name: secret,
    server: secret,
    input: json,
    meta: secret,
  },
  provider_result: {
    type: "provider_result",
    callId: secret,
    name: secret,
    status: "ok",
    output: json,
    meta: secret,
  },
};
const call = { id: secret, name: secret, input: json, malformed: secret, incomplete: true };
const question: Complete<Question> = {
  callId: secret,
  path: [secret],
  tool: secret,
  input: json,
  questions: [secret],
  schema: json,
  suggestions: [{ type: "approve", input: json, always: "tool" }, { type: "deny", reason: secret }, {
    type: "reply",
    text: secret,
  }],
};
const parts = Object.values(contents);
const prompt = { role: "user", parts, from: secret, id: secret } as const;
const message = { role: "assistant", parts: Object.values(answers) } as const;
const inner: Complete<InnerCalls> = {
  calls: [{
    id: secret,
    name: secret,
    input: json,
    at: 1,
    status: "ok",
    parts,
    questions: [secret],
    pending: true,
    answer: { approved: true, reason: secret, run: secret, pausedAt: 1 },
    provider: true,
    output: json,
  }],
  omitted: 1,
};
const result = {
  callId: secret,
  name: secret,
  status: "ok",
  parts,
  artifacts: [{ uri: secret, name: secret, mediaType: secret }],
  handled: true,
  inner,
} as const;
const messages: Complete<ByKey<Message, "role">> = {
  user: prompt,
  assistant: message,
  tool: { role: "tool", results: [result] },
};
const usage = { input: 1, output: 1, cached: 1, cacheWrite: 1, reasoning: 1 };

const events: ByKey<Event, "type"> = {
  "run.started": { type: "run.started", run: secret, session: secret, resumed: false, request: secret, usage },
  "run.finished": {
    type: "run.finished",
    status: "done",
    text: secret,
    reason: secret,
    finish: "stop",
    output: json,
    usage,
  },
  "run.paused": { type: "run.paused", questions: [question], usage, resumeToken: secret },
  "run.failed": { type: "run.failed", error: secret, message: secret, code: "internal", retryAfter: 1, usage },
  "run.aborted": { type: "run.aborted", reason: secret, text: secret, usage },
  "text.delta": { type: "text.delta", turn: 1, part: 0, text: secret },
  "reasoning.delta": { type: "reasoning.delta", turn: 1, part: 0, text: secret },
  "call.delta": { type: "call.delta", turn: 1, call: secret, name: secret, text: secret },
  "part.added": {
    type: "part.added",
    turn: 1,
    part: 0,
    content: { type: "source", url: secret, title: secret, text: secret },
  },
  "provider_tool.started": {
    type: "provider_tool.started",
    turn: 1,
    part: 0,
    content: answers.provider_call,
  },
  "provider_tool.finished": {
    type: "provider_tool.finished",
    turn: 1,
    part: 0,
    content: answers.provider_result,
  },
  "output.delta": {
    type: "output.delta",
    turn: 1,
    changes: [{ path: [secret], value: json }, { path: [], text: secret }],
  },
  "session.opened": { type: "session.opened", source: "new" },
  "session.closed": { type: "session.closed" },
  "prompt.accepted": { type: "prompt.accepted", prompt },
  "turn.started": { type: "turn.started", turn: 1 },
  "model.started": { type: "model.started", turn: 1, model: secret },
  "model.reset": { type: "model.reset", turn: 1 },
  "call.ready": { type: "call.ready", turn: 1, call },
  "model.finished": { type: "model.finished", turn: 1, finish: "stop", usage, attempts: 1, text: secret, edits: [] },
  "tool.started": { type: "tool.started", turn: 1, call: secret, name: secret, batch: secret, index: 0 },
  "approval.asked": { type: "approval.asked", turn: 1, call: secret, ...question },
  "approval.decided": {
    type: "approval.decided",
    turn: 1,
    call: secret,
    decision: "deny",
    by: "policy",
    reason: secret,
  },
  "tool.progress": { type: "tool.progress", turn: 1, call: secret, data: json },
  "tool.finished": { type: "tool.finished", turn: 1, call: secret, result },
  "turn.finished": { type: "turn.finished", turn: 1 },
  "steering.injected": { type: "steering.injected", messages: [prompt] },
  "steering.interrupted": { type: "steering.interrupted" },
  notice: { type: "notice", text: secret },
  data: { type: "data", name: secret, data: json },
  warning: {
    type: "warning",
    code: "hook.failed",
    message: secret,
    middleware: secret,
    point: "tool",
    error: secret,
  },
  "compact.started": { type: "compact.started", trigger: "auto" },
  "compact.finished": {
    type: "compact.finished",
    trigger: "auto",
    status: "declined",
    before: 1,
    after: 1,
    reason: secret,
  },
  "file.changed": { type: "file.changed", turn: 1, call: secret, path: secret, change: "add" },
  "cwd.changed": { type: "cwd.changed", turn: 1, call: secret, from: secret, to: secret },
  "instructions.loaded": { type: "instructions.loaded", path: secret, reason: "session", turn: 1, call: secret },
  "subagent.started": { type: "subagent.started", call: secret, agent: secret, run: secret },
  "subagent.event": {
    type: "subagent.event",
    call: secret,
    agent: secret,
    event: { type: "notice", text: secret } as never, // an event of any type: the others are here
  },
  "subagent.finished": { type: "subagent.finished", call: secret, agent: secret, status: "done", text: secret },
  "hook.acted": {
    type: "hook.acted",
    middleware: secret,
    point: "tool",
    turn: 1,
    call: secret,
    did: ["passed"],
    changed: [secret],
    changes: [
      { key: "request.messages", before: Object.values(messages), after: [], same: 1 },
      { key: "context", before: [], after: [secret.slice(0, 3), secret.slice(3)], same: 0 },
      { key: "result", before: result, after: { [secret]: json }, same: 0 },
    ],
    decided: secret,
    ms: 1,
  },
  "model.requested": {
    type: "model.requested",
    turn: 1,
    attempt: 1,
    instructions: secret,
    messages: Object.values(messages),
    omitted: 0,
    tools: [{ name: secret, description: secret, schema: { description: secret } }],
  },
};

/** Returns the paths of the texts and the keys that contain the secret. */
function found(value: unknown, path: string): string[] {
  if (typeof value === "string") return value.includes(secret) ? [path] : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const at = Array.isArray(value) ? `${path}[]` : `${path}.${key.replace(secret, "KEY")}`;
    return [...key.includes(secret) ? [`${at} (key)`] : [], ...found(inner, at)];
  });
}

/** Returns the paths of the texts that are not masked, without repetitions. */
function unmasked(values: readonly (readonly [path: string, value: unknown])[]): string[] {
  return [...new Set(values.flatMap(([path, value]) => found(value, path)))].sort();
}

const hidden = () => redact({ secrets: [secret] });

Deno.test("redact() masks every text field of every event, except for ids, media and names that the application chose", async () => {
  const leak: Middleware = {
    name: "leak",
    session(ctx, next) {
      for (const event of Object.values(events)) ctx.emit(event as Event); // complete, so optional fields are there
      return next();
    },
    model(ctx, next) {
      for (const type of ["text.delta", "reasoning.delta", "call.delta", "call.ready"] as const) ctx.emit(events[type]);
      return next();
    },
  };
  const seen = await Array.fromAsync(agent({ model: scripted("Done."), use: [hidden(), leak] }).run("Go").events);
  const started = seen.findIndex(({ type }) => type === "turn.started");
  const types = new Set(seen.map(({ type }) => type));
  assertEquals(Object.keys(events).filter((type) => !types.has(type as Event["type"])), []);
  const isDelta = ({ type }: Event) => type.endsWith(".delta") || type === "call.ready";
  const checked = seen.filter((event, index) => !isDelta(event) || index > started); // deltas are masked where a model streams them
  assertEquals(unmasked(checked.map((event) => [event.type, event])), [
    "approval.asked.call",
    "approval.asked.callId",
    "approval.asked.path[]",
    "approval.decided.call",
    "call.delta.call",
    "call.ready.call.id",
    "cwd.changed.call",
    "data.name",
    "file.changed.call",
    "hook.acted.call",
    "hook.acted.changed[]",
    "hook.acted.decided",
    "hook.acted.middleware",
    "instructions.loaded.call",
    "model.started.model",
    "prompt.accepted.prompt.id",
    "prompt.accepted.prompt.parts[].data",
    "prompt.accepted.prompt.parts[].mediaType",
    "prompt.accepted.prompt.parts[].url",
    "provider_tool.finished.content.callId",
    "provider_tool.started.content.callId",
    "run.failed.error",
    "run.paused.questions[].callId",
    "run.paused.questions[].path[]",
    "run.paused.resumeToken",
    "run.started.request",
    "run.started.run",
    "run.started.session",
    "steering.injected.messages[].id",
    "steering.injected.messages[].parts[].data",
    "steering.injected.messages[].parts[].mediaType",
    "steering.injected.messages[].parts[].url",
    "subagent.event.agent",
    "subagent.event.call",
    "subagent.finished.agent",
    "subagent.finished.call",
    "subagent.started.agent",
    "subagent.started.call",
    "subagent.started.run",
    "tool.finished.call",
    "tool.finished.result.callId",
    "tool.finished.result.inner.calls[].answer.run",
    "tool.finished.result.inner.calls[].id",
    "tool.finished.result.inner.calls[].parts[].data",
    "tool.finished.result.inner.calls[].parts[].mediaType",
    "tool.finished.result.inner.calls[].parts[].url",
    "tool.finished.result.parts[].data",
    "tool.finished.result.parts[].mediaType",
    "tool.finished.result.parts[].url",
    "tool.progress.call",
    "tool.started.batch",
    "tool.started.call",
    "warning.error",
    "warning.middleware",
  ]);
});

const toolResult: Complete<ToolResult> = {
  type: "result",
  status: "ok",
  parts,
  context: [secret],
  person: secret,
  silent: false,
  artifacts: result.artifacts,
  handled: true,
  input: json,
  rewritten: true,
  error: secret,
};
const reviewed = { ...result, context: [secret], rewritten: { input: json } };
const asked = [{ text: secret, middleware: "guard", key: secret }];
const approval: Complete<SavedApproval> = {
  name: secret,
  input: json,
  parsed: json,
  asked,
  guards: [["guard", asked]],
};
const steps = [[{ name: "charge", value: json }]];
const records: ByKey<CallRecord, "state"> = {
  pending: { state: "pending", call, inner, steps },
  waiting: { state: "waiting", call, inner, steps, questions: [question], approval, saved: json },
  running: { state: "running", call, inner, steps, name: "look", input: json, note: secret },
  ran: { state: "ran", call, inner, steps, name: "look", input: json, note: secret, raw: toolResult },
  done: { state: "done", call, inner, steps, result: reviewed },
};
const all = Object.values(messages);
const positions: ByKey<Position, "at"> = {
  incoming: { at: "incoming", messages: all, keep: 1 },
  prompt: { at: "prompt", messages: all, keep: 1 },
  model: { at: "model", turn: 1, shown: true },
  tools: { at: "tools", turn: 1, message, calls: Object.values(records) },
  turnEnd: { at: "turnEnd", turn: 1, added: 1 },
  stop: { at: "stop", turn: 1, message },
  promptEnd: { at: "promptEnd", answer: { status: "done", text: secret, reason: secret, output: json } },
  compact: { at: "compact", instructions: secret },
};
const mail: ByKey<Mail, "type"> = {
  message: { type: "message", message: prompt, context: [prompt], after: "batch" },
  finish: { type: "finish" },
};
const given: ByKey<PersonAnswer, "type"> = {
  approve: { type: "approve", callId: secret, input: json, always: "tool" },
  deny: { type: "deny", callId: secret, reason: secret },
  reply: { type: "reply", callId: secret, text: secret },
};

function sessionAt(position: Complete<Position>): Complete<Omit<Session, "version" | "report">> { // no run saves a report
  return {
    id: secret,
    messages: all,
    compactions: 1,
    archive: secret,
    owner: secret,
    state: [["count", json]],
    rules: [{ tool: "look", path: ["helper"], input: json, askedBy: { middleware: "guard", key: secret } }],
    last: { run: secret, event: events.notice, before: 1, at: 1 },
    lease: { until: 1, closing: "stop", requested: true, rollback: true, released: true },
    mail: Object.values(mail),
    readUntil: 1,
    run: {
      id: secret,
      startedAt: 1,
      position,
      exit: {
        status: "paused",
        reason: secret,
        answer: { status: "done", text: secret, reason: secret, output: json },
        questions: [question],
        schemas: [json],
        rollback: false,
        withhold: false,
        error: undefined,
      },
      counters: { turns: 1, calls: 1, continuations: 0, batches: 1, outputs: 0, cuts: 0 },
      finish: "calls",
      usage,
      state: [["count", json]],
      answers: Object.values(given).map((answer) => ({ question, answer, approval, taken: false })),
      before: 0,
      events: 1,
      request: secret,
      traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
      recoveries: 1,
    },
  };
}

/** Ends of paths that are deliberately kept, wherever a message, a question or a call is. */
const keptEnds = ["callId", "id", "archive", "path[]", "data", "mediaType", "url", "meta"];

Deno.test("redact() masks every text field of what a store keeps, at every position of a run", () => {
  const save = hidden()["~save"];
  const kept = Object.values(positions).flatMap((position) => {
    const session = sessionAt(position) as Omit<Session, "version">; // complete, so optional fields are there
    const saved = save?.(session, {} as never); // the scope is for when()
    return unmasked([[`session at ${position.at}`, saved]]);
  });
  const rest = kept.filter((path) => !keptEnds.some((end) => path.endsWith(`.${end}`)));
  assertEquals(
    rest.filter((path) => path.startsWith("session at model")),
    ["last.run", "messages[].results[].inner.calls[].answer.run", "owner", "run.request"]
      .map((path) => `session at model.${path}`),
  );
  assertEquals(rest.filter((path) => !/\.(owner|run\.request|last\.run|answer\.run)$/.test(path)), []);
});

Deno.test("redact() masks every text field of the result of a run", async () => {
  const end: Complete<Omit<RunResult, "messages" | "error">> = {
    status: "done",
    run: secret,
    session: secret,
    text: secret,
    output: json,
    reason: secret,
    finish: "stop",
    questions: [question],
    usage,
  };
  const leak: Middleware = {
    name: "leak",
    session: async (_, next) => ({ ...await next(), ...end }),
    prompt: (ctx, next) => next({ context: [...ctx.context, secret] }),
  };
  const result = await agent({ model: scripted(secret), use: [hidden(), leak] }).run(secret).result;
  assertEquals(unmasked([["result", result]]), ["result.questions[].callId", "result.questions[].path[]"]);
});

Deno.test("redact() masks every text field of a result before the outer hooks and the model read it", async () => {
  const seen: ToolResult[] = [];
  const look = tool({ name: "look", description: secret, input: z.object({}), execute: () => toolResult });
  const outer: Middleware = {
    name: "outer",
    async execute(_, next) {
      const result = await next();
      seen.push(result);
      return result;
    },
  };
  const model = scripted({ calls: [["look", {}], [secret, json]] }, "Done.");
  const leak: Middleware = {
    name: "leak",
    session: (ctx, next) => next({ context: [...ctx.context, secret] }),
    input: (ctx, next) => next({ context: [...ctx.context, secret] }),
    prompt: (ctx, next) => next({ context: [...ctx.context, secret] }),
    turn: (ctx, next) => next({ context: [...ctx.context, secret] }),
  };
  await agent({ model, tools: [look], use: [outer, hidden(), leak], instructions: secret }).run(secret).result;
  assertEquals(unmasked(seen.map((each) => ["result", each])), [
    "result.error",
    "result.parts[].data",
    "result.parts[].mediaType",
    "result.parts[].url",
  ]);
  const requests = model.requests.map(({ model: _, ...request }) => request);
  assertEquals(unmasked(requests.map((request) => ["request", request])), [
    "request.messages[].results[].parts[].data",
    "request.messages[].results[].parts[].mediaType",
    "request.messages[].results[].parts[].url",
  ]);
});

Deno.test("redact() masks every text field of audit records, which cannot stand before it", async () => {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  const look = tool({ name: "look", description: "", input: z.looseObject({}), execute: () => "Seen." });
  const model = scripted({ calls: [["look", json], [secret, json]] }, "Done.");
  await agent({ model, tools: [look], use: [hidden(), audit(write)] }).run(secret).result;
  const written = lines.map((line): AuditRecord => JSON.parse(line));
  assertEquals(written.map(({ type }) => type), ["prompt", "call", "call", "run"]);
  assertEquals(unmasked(written.map((record) => ["record", record])), []);
  assertThrows(
    () => agent({ model, use: [audit(write), hidden()] }),
    TypeError,
    'Cannot use "audit" before "redact": put redact() first in use',
  );
});
