/**
 * Attacks on owners: ids and owners that contain separators, quotes and each other.
 *
 * @module
 */
import { agent, memory, serve, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { mcpWire } from "@jizai/jizai/wire/mcp";
import { responses } from "@jizai/jizai/wire/openai";
import * as z from "zod";
import { ownedKey } from "../../src/session/owned_key.ts";
import { piecesOf } from "../support/requests.ts";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

const secret = "the owner's own words";
const pieces = [
  "a",
  "b",
  " ",
  "/",
  ":",
  ",",
  '"',
  '["a","b"]',
  "\\",
  "\u0001",
  "%2F",
  "a b",
  "__proto__",
  "é",
  "e\u0301",
] as const;

function name(chance: Chance): string {
  return Array.from({ length: 1 + chance.below(4) }, () => chance.one(pieces)).join("") || "a";
}

/** An app whose `x-user` header names the owner, URL-encoded. */
function target() {
  const gate = Promise.withResolvers<string>();
  const work = tool({ name: "work", description: "Works", input: z.object({}), execute: () => gate.promise });
  const model = scripted({ calls: [["work", {}]] }, ...Array.from({ length: 90 }, () => "Hello."));
  const app = serve(agent({ model, tools: [work] }), {
    store: memory(),
    wires: [agUi(), aiSdkUi(), aiSdkMessages(), mcpWire(), responses()],
    owner: (c) => decodeURIComponent(c.req.header("x-user") ?? ""),
  });
  const send = async (owner: string, method: string, path: string, body?: unknown) => {
    const headers = { "x-user": encodeURIComponent(owner), "content-type": "application/json" };
    const response = await app.request(path, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  };

  /** Begins a run that works until it is released. Returns its id, and a function that releases it and returns its stream. */
  async function begin(owner: string, prompt: string) {
    const headers = { "x-user": encodeURIComponent(owner), "content-type": "application/json" };
    const response = await app.request("/runs", { method: "POST", headers, body: JSON.stringify({ prompt }) });
    const pieces = piecesOf(response);
    const run = /"run":"([^"]+)"/.exec(await pieces.until(`"tool.started"`))?.[1] ?? "";
    const release = () => {
      gate.resolve("Worked.");
      return pieces.rest();
    };
    return { run, release };
  }

  return { send, begin };
}

/** Returns two different owners: often, the name of one begins with the name of the other. */
function twoOwners(chance: Chance): readonly [string, string] {
  const bob = name(chance);
  return [chance.below(2) === 0 ? `${bob}${chance.one(pieces)}${name(chance)}` : name(chance), bob];
}

/** Returns the texts between the names of two owners, if one begins with the other, with separators that a key could have. */
function restsOf(ada: string, bob: string): readonly string[] {
  if (!ada.startsWith(bob)) return [];
  const rest = ada.slice(bob.length);
  return [rest, rest.slice(1)].flatMap((each) => ["", " ", "/", ":", ","].map((separator) => `${each}${separator}`));
}

/** Returns the body of an MCP client that continues a session. */
function mcpPrompt(session: string): object {
  const params = { name: "agent", arguments: { prompt: "What did I say?", session } };
  return { jsonrpc: "2.0", id: 1, method: "tools/call", params };
}

/** Returns requests that create a session under an id. Another owner may have used it: neither owner can know. */
function sharedIds(id: string): readonly (readonly [path: string, body: unknown])[] {
  const message = { id: "m", role: "user" };
  return [
    ["/chat", { id, messages: [{ ...message, parts: [{ type: "text", text: "Hi" }] }] }],
    ["/ag-ui", {
      ...{ threadId: id, runId: "r1", tools: [], context: [], state: {} },
      messages: [{ ...message, content: "Hi" }],
    }],
  ];
}

/** Creates sessions of one owner and tries to reach them as another one. Fails if a response contains the owner's text. */
export const owners: Attack = {
  name: "owners",
  async attempt(chance) {
    const { send, begin } = target();
    const [ada, bob] = twoOwners(chance);
    if (ada === bob) return 0;
    const working = await begin(ada, secret);
    const id = name(chance);
    const { text } = await send(ada, "POST", "/chat", {
      id,
      messages: [{ id: "m", role: "user", parts: [{ type: "text", text: secret }] }],
    });
    const run = /"run":"([^"]+)"/.exec((await send(ada, "POST", "/runs", { prompt: secret, session: id })).text)?.[1] ??
      "";
    expect(run !== "" || text !== "", () => "no run began");
    const guesses = [
      id,
      `${id} ${ada}`,
      `${ada} ${id}`,
      `${ada}/${id}`,
      ownedKey(ada, id),
      JSON.stringify([ada, id]),
      encodeURIComponent(id),
      ...restsOf(ada, bob).map((rest) => `${rest}${id}`),
    ];
    const runs = [run, working.run, ownedKey(ada, run), `${run} ${ada}`, `${ada} ${run}`].concat(
      restsOf(ada, bob).map((rest) => `${rest}${working.run}`),
    );
    const requests: (readonly [method: string, path: string, body?: unknown])[] = [
      ...guesses.flatMap((guess) => [
        ["GET", `/sessions/${encodeURIComponent(guess)}`] as const,
        ["POST", `/sessions/${encodeURIComponent(guess)}/compact`, {}] as const,
        ["GET", `/chat/${encodeURIComponent(guess)}/stream`] as const,
        ["POST", `/sessions/${encodeURIComponent(guess)}/answers`, { answers: [] }] as const,
        ["POST", "/runs", { prompt: "What did I say?", session: guess }] as const,
        ["POST", "/mcp", mcpPrompt(guess)] as const,
      ]),
      ...runs.flatMap((guess) => [
        ["GET", `/runs/${encodeURIComponent(guess)}`] as const,
        ["POST", `/runs/${encodeURIComponent(guess)}/stop`] as const,
        ["POST", `/runs/${encodeURIComponent(guess)}/stop?rollback`] as const,
        ["POST", `/runs/${encodeURIComponent(guess)}/finish`] as const,
        ["POST", "/v1/responses", { model: "agent", input: "What did I say?", previous_response_id: guess }] as const,
        ["POST", `/runs/${encodeURIComponent(guess)}/messages`, { text: "Hi" }] as const,
      ]),
    ];
    for (const [method, path, body] of requests) {
      const { status, text } = await send(bob, method, path, body);
      const request = `${method} ${path} as ${JSON.stringify(bob)}`;
      expect(!text.includes(secret), () => `${request} reached the session of ${JSON.stringify(ada)}: ${text}`);
      expect(status < 500, () => `${request} was answered with ${status} ${text}`);
      expect(status >= 400 || status === 204, () => `${request} was answered with ${status} ${text}`);
    }
    expect((await working.release()).includes('"run.finished"'), () => `${JSON.stringify(bob)} ended a run of another`);
    for (const [path, body] of sharedIds(id)) {
      const { status, text } = await send(bob, "POST", path, body);
      expect(status === 200, () => `the id of another owner was refused at ${path} with ${status} ${text}`);
      expect(!text.includes(secret), () => `the id of another owner reached its session at ${path}: ${text}`);
    }
    const own = await send(ada, "GET", `/sessions/${encodeURIComponent(id)}`);
    expect(
      own.status === 200 && own.text.includes(secret),
      () => `the owner ${JSON.stringify(ada)} lost ${JSON.stringify(id)}: ${own.status}`,
    );
    return requests.length;
  },
};
