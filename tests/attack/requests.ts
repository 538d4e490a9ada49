/**
 * Attacks on HTTP: hostile and nested JSON for every route of the native protocol and of all wires.
 *
 * @module
 */
import { agent, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { mcpWire } from "@jizai/jizai/wire/mcp";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { drop } from "../support/asking.ts";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

const user = { role: "user", parts: [{ type: "text", text: "Hi" }] };
const plain = { role: "user", content: "Hi" };
const declared = { name: "look", description: "Looks", parameters: { type: "object" } };

/** A valid body for each route. */
const bodies: readonly (readonly [path: string, body: unknown])[] = [
  ["/runs", { prompt: "Hi" }],
  ["/runs", { messages: [user], session: "s1" }],
  ["/runs/r1/messages", { text: "Hi", after: "batch" }],
  ["/runs/r1/stop", {}],
  ["/sessions/s1/answers", { answers: [{ type: "approve", callId: "call_1", input: { table: "b" } }], at: 3 }],
  ["/sessions/s1/compact", { instructions: "Short." }],
  ["/ag-ui", {
    threadId: "s1",
    runId: "r1",
    messages: [{ id: "m", ...plain }],
    tools: [declared],
    context: [],
    state: {},
  }],
  ["/ag-ui", {
    threadId: "s1",
    runId: "r1",
    messages: [],
    resume: [{ status: "resolved", interruptId: "call_1@5", payload: { type: "approve", input: { table: "b" } } }],
  }],
  ["/chat", { id: "s1", messages: [{ id: "m", ...user }], trigger: "submit-message" }],
  ["/chat", {
    id: "s1",
    messages: [{
      id: "m",
      role: "assistant",
      parts: [{ type: "tool-drop", toolCallId: "call_1", state: "output-available", output: {} }],
    }],
  }],
  ["/v1/chat/completions", {
    model: "agent",
    messages: [
      plain,
      { role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "look", arguments: "{}" } }] },
      { role: "tool", tool_call_id: "c", content: "ok" },
      plain,
    ],
    tools: [{ type: "function", function: declared }],
    stream: true,
  }],
  ["/mcp", {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "agent", arguments: { prompt: "Hi", session: "s1" }, _meta: { progressToken: 1 } },
  }],
  ["/mcp", {
    jsonrpc: "2.0",
    id: "a",
    method: "tools/call",
    params: {
      name: "drop",
      arguments: { table: "b" },
      inputResponses: { "call@r1@5": { action: "accept", content: {} } },
      requestState: `${"0".repeat(64)}["s1","r1@5"]`,
    },
  }],
  ["/v1/responses", {
    model: "agent",
    input: [{ type: "message", ...plain }, { type: "function_call", call_id: "c", name: "look", arguments: "{}" }, {
      type: "function_call_output",
      call_id: "c",
      output: "ok",
    }, plain],
    tools: [{ type: "function", ...declared }],
    stream: true,
  }],
];

function nested(depth: number, leaf: unknown): unknown {
  let value = leaf;
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { value };
  return value;
}

function hostileValue({ below, one }: Chance): unknown {
  return one<() => unknown>([
    () => null,
    () => -1,
    () => 1e308,
    () => "",
    () => "\ud800",
    () => "\u0000",
    () => "x".repeat(1 + below(20_000)),
    () => [],
    () => ({}),
    () => [null],
    () => nested(1 + below(200), "deep"),
    () => nested(5_000, "deep"),
    () => JSON.parse('{"__proto__":{"type":"approve"},"constructor":{"prototype":{}}}'),
    () => "constructor",
    () => "__proto__",
    () => ({ then: "x", toJSON: "x", toString: null }),
    () => true,
    () => Array.from({ length: 1 + below(500) }, () => ({ type: "text", text: "x" })),
    () => ({ type: "constructor", role: "toString" }),
  ])();
}

/** Replaces a random part of a value. */
function mutated(value: unknown, chance: Chance): unknown {
  const { below } = chance;
  if (typeof value !== "object" || value === null || below(4) === 0) return hostileValue(chance);
  const keys = Object.keys(value);
  const key = keys[below(keys.length)] ?? "added";
  if (below(12) === 0) return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
  const inner = mutated(Reflect.get(value, key), chance);
  if (Array.isArray(value)) return value.map((item, index) => String(index) === key ? inner : item);
  return { ...value, [key]: inner };
}

/** JSON text, sometimes deeper than JSON.stringify() can write, or broken. */
function written(body: unknown, { below }: Chance): string {
  const json = JSON.stringify(body) ?? "null";
  if (below(20) === 0) return json.slice(0, below(json.length));
  if (below(20) > 0) return json;
  const depth = 1_000 * (1 + below(200));
  const value = /(?<=[:[,])"[^"]*"(?!:)/g;
  const values = json.match(value) ?? [];
  let left = below(values.length);
  return json.replace(value, (text) => left-- === 0 ? `${"[".repeat(depth)}${"]".repeat(depth)}` : text);
}

function randomPath(path: string, { below, one }: Chance): string {
  if (below(10) > 0) return path;
  return path.replace(
    /[rs]1/,
    encodeURIComponent(one(["..", "a/b", "%", "\u0000", "__proto__", "😀", '["a","b"]', "x".repeat(2_000)])),
  );
}

/** Serves an agent in all dialects, and records the errors that are not the client's. */
function target() {
  const failures: unknown[] = [];
  const steps = [{ calls: [["drop", { table: "a" }]] as const }, "Done."];
  const model = scripted(...Array.from({ length: 100 }, () => steps).flat());
  const app = serve(agent({ model, tools: [drop] }), {
    wires: [agUi(), aiSdkUi(), chatCompletions(), mcpWire({ tools: ["drop"] }), responses()],
    onError: (error) => failures.push(error),
  });
  return { app, failures };
}

/** Sends mutated requests. Fails if one is answered with 500 or never. */
export const requests: Attack = {
  name: "requests",
  async attempt(chance) {
    const { app, failures } = target();
    const count = 20;
    for (let sent = 0; sent < count; sent++) {
      const [path, valid] = chance.one(bodies as [(typeof bodies)[number]]);
      const to = randomPath(path, chance);
      const body = written(chance.below(5) === 0 ? valid : mutated(valid, chance), chance);
      const response = await app.request(to, { method: "POST", headers: { "content-type": "application/json" }, body });
      const text = await response.text();
      const request = `POST ${to} ${body.slice(0, 500)}`;
      expect(
        response.status < 500,
        () => `${request} was answered with ${response.status} ${text}: ${failures.map(String)}`,
      );
      expect(!text.includes('"run.failed"'), () => `${request} made the run fail: ${failures.map(String)}`);
    }
    return count;
  },
};
