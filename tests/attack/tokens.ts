/**
 * Attacks on answers and resume tokens: forged, mutated and foreign tokens, and answers of unknown types or for other calls.
 *
 * @module
 */
import { agent, memory, type PersonAnswer, serve, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import * as z from "zod";
import type { Chance } from "../support/seeded.ts";
import { eventsOf, first, post } from "../support/requests.ts";
import { type Attack, expect } from "./attack.ts";

const keys = [{ id: "k1", secret: "a secret of at least thirty-two bytes" }];
const old = resumeTokens({ keys, expiresIn: 1_000, now: () => Date.now() - 60_000 });
const foreign = resumeTokens({ keys: [{ id: "k1", secret: "another secret of thirty-two bytes!" }] });

/** An agent whose tool needs approval. */
function approving() {
  const done: string[] = [];
  const drop = tool({
    name: "drop",
    description: "Drops a table",
    input: z.object({ table: z.string() }),
    ask: true,
    execute: ({ table }) => void done.push(table),
  });
  const model = scripted(...Array.from({ length: 50 }, () => ({ calls: [["drop", { table: "a" }]] as const })));
  return { done, assistant: agent({ model, tools: [drop] }) };
}

/** An app without a store. */
function target(tokens = resumeTokens({ keys })) {
  const { done, assistant } = approving();
  return { done, app: serve(assistant, { resumeTokens: tokens }) };
}

/** Answers a run in this process in a wrong way, which neither HTTP nor a token rejects before. */
async function answerDirectly(chance: Chance): Promise<void> {
  const { done, assistant } = approving();
  const options = { session: "s", store: memory(), onError: () => {} };
  const { questions: [{ callId = "" } = {}] } = await assistant.run({ ...options, prompt: "Go" }).result;
  const wrong = wrongAnswer(callId, chance);
  const named = () => JSON.stringify(wrong);
  try {
    const answers = [wrong as PersonAnswer]; // a caller's mistake that types do not prevent
    await assistant.resume({ ...options, answers }).result;
  } catch (error) {
    expect(error instanceof Error, () => `${named()} made resume() throw ${error}`);
  }
  expect(done.length === 0, () => `${named()} ran the tool`);
}

async function paused({ app }: ReturnType<typeof target>) {
  const events = await eventsOf(post(app, "/runs", { prompt: "Go" }));
  const { callId = "" } = first("run.paused", events).questions[0] ?? {};
  return {
    callId,
    session: first("run.started", events).session,
    token: first("run.paused", events).resumeToken ?? "",
  };
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.= ";

/** Changes a token: characters replaced, removed, inserted or swapped, parts exchanged with another token. */
function forged(token: string, other: string, { below, one }: Chance): string {
  const at = one([below(token.length), token.length - 1]);
  const letter = letters[below(letters.length)] ?? "";
  const [key = "", ...parts] = token.split(".");
  return one<() => string>([
    () => token.slice(0, at) + letter + token.slice(at + 1),
    () => token.slice(0, at) + token.slice(at + 1),
    () => token.slice(0, at) + letter + token.slice(at),
    () => token.slice(0, at),
    () => token.slice(at),
    () => token.slice(0, at) + other.slice(at),
    () => [one(["k2", "", "constructor", "__proto__"]), ...parts].join("."),
    () => [key, ...parts.toReversed(), letter].join("."),
    () => token + token,
    () => btoa(JSON.stringify({ version: 3, expires: 1e15, session: { id: "s" } })),
  ])();
}

function wrongAnswer(callId: string, { one }: Chance): unknown {
  return one<unknown>([
    { callId, type: "approved" },
    { callId, type: "constructor" },
    { callId, type: "__proto__" },
    { callId, type: "Approve" },
    { callId, type: ["approve"] },
    { callId, type: null },
    { callId },
    { callId: [callId], type: "approve" },
    { callId: `${callId} `, type: "approve" },
    { callId: "call_999", type: "approve" },
    { type: "approve" },
    { callId, type: "deny" },
    null,
    [],
  ]);
}

/** Sends forged tokens and wrong answers. Fails if the tool runs. */
export const tokens: Attack = {
  name: "tokens",
  async attempt(chance) {
    const attacked = target();
    const [mine, other, theirs] = [await paused(attacked), await paused(attacked), await paused(target(foreign))];
    let count = 0;
    const answer = async (resumeToken: string, given: unknown, { session } = mine) => {
      const body = { answers: [given], resumeToken };
      const response = await post(attacked.app, `/sessions/${session}/answers`, body);
      const text = await response.text();
      const sent = `${JSON.stringify(given)} with the token ${resumeToken}`;
      count++;
      expect(attacked.done.length === 0, () => `${sent} ran the tool: ${text}`);
      expect(response.status < 500, () => `${sent} was answered with ${response.status} ${text}`);
      return response.status;
    };
    const approve = { callId: mine.callId, type: "approve" };
    for (let each = 0; each < 20; each++) {
      const token = chance.below(4) === 0
        ? chance.one([other.token, theirs.token])
        : forged(mine.token, other.token, chance);
      if (token === mine.token || token.trim() === mine.token) continue;
      const status = await answer(token, approve);
      expect(status >= 400, () => `the token ${token} was accepted in place of ${mine.token}`);
    }
    const expired = await paused(target(old));
    const status = await answer(expired.token, { callId: expired.callId, type: "approve" }, expired);
    expect(status >= 400, () => `a token was accepted after it had expired`);
    for (let each = 0; each < 5; each++) {
      count++;
      await answerDirectly(chance);
    }
    for (let each = 0; each < 5; each++) await answer(mine.token, wrongAnswer(mine.callId, chance));
    const accepted = await post(attacked.app, `/sessions/${mine.session}/answers`, {
      answers: [approve],
      resumeToken: mine.token,
    });
    await accepted.text();
    expect(attacked.done.length === 1, () => `the token itself was rejected with ${accepted.status}`);
    return count;
  },
};
