/**
 * Attacks on owners: ids and owners that contain separators, quotes and each other.
 *
 * @module
 */
import { agent, memory, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { memoryLog } from "@jizai/jizai/session/log";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { ownedKey } from "../../src/session/owned_store.ts";
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
  "\u0000",
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
  const model = scripted(...Array.from({ length: 60 }, () => "Hello."));
  const app = serve(agent({ model }), {
    store: memory(),
    log: memoryLog(),
    wires: [agUi(), aiSdkUi()],
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
  return { send };
}

/** Creates sessions of one owner and tries to reach them as another one. Fails if a response contains the owner's text. */
export const owners: Attack = {
  name: "owners",
  async attempt(chance) {
    const { send } = target();
    const [ada, bob] = [name(chance), name(chance)];
    if (ada === bob) return 0;
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
    ];
    const runs = [run, ownedKey(ada, run), `${run} ${ada}`, `${ada} ${run}`];
    const requests: (readonly [method: string, path: string, body?: unknown])[] = [
      ...guesses.flatMap((guess) => [
        ["GET", `/sessions/${encodeURIComponent(guess)}`] as const,
        ["GET", `/chat/${encodeURIComponent(guess)}/stream`] as const,
        ["POST", `/sessions/${encodeURIComponent(guess)}/answers`, { answers: [] }] as const,
        ["POST", "/runs", { prompt: "What did I say?", session: guess }] as const,
      ]),
      ...runs.flatMap((guess) => [
        ["GET", `/runs/${encodeURIComponent(guess)}`] as const,
        ["POST", `/runs/${encodeURIComponent(guess)}/stop`] as const,
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
    const own = await send(ada, "GET", `/sessions/${encodeURIComponent(id)}`);
    expect(
      own.status === 200 && own.text.includes(secret),
      () => `the owner ${JSON.stringify(ada)} lost ${JSON.stringify(id)}: ${own.status}`,
    );
    return requests.length;
  },
};
