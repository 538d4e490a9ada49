/**
 * Attacks on the process: callbacks that throw, reject later, or return something else than they promise.
 *
 * @module
 */
import { agent, type AnyTool, deny, type Middleware, reply, text, tool, user, when } from "@jizai/jizai";
import { audit } from "@jizai/jizai/middleware/audit";
import { cache } from "@jizai/jizai/middleware/cache";
import { delivery } from "@jizai/jizai/middleware/delivery";
import { logger } from "@jizai/jizai/middleware/logger";
import { rateLimit } from "@jizai/jizai/middleware/rate_limit";
import { retry } from "@jizai/jizai/middleware/retry";
import { serial } from "@jizai/jizai/middleware/serial";
import { transcript } from "@jizai/jizai/middleware/transcript";
import { scripted } from "@jizai/jizai/model/scripted";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import * as z from "zod";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

/** Fails in a random way: at once, in a promise, later, or through a thenable. */
function failure({ one }: Chance): () => never {
  const error = () => new Error("The callback failed");
  const fails = one<() => unknown>([
    () => {
      throw error();
    },
    () => Promise.reject(error()),
    () => new Promise((_, reject) => setTimeout(reject, 0, error())),
    () => ({ then: (_: unknown, reject: (error: unknown) => void) => reject?.(error()) }),
    () => ({
      get then() {
        throw error();
      },
    }),
  ]);
  return fails as () => never; // each is a caller's mistake that types do not prevent
}

/** A query builder: a thenable whose fields contain a password. */
function query(password: string) {
  return { password, then: (resolve: (rows: unknown) => unknown) => Promise.resolve([{ id: 1 }]).then(resolve) };
}

/** Returns a hook that passes a change inward. */
function passing<D>(change: D) {
  return <R>(_: unknown, next: (change: D) => Promise<R>): Promise<R> => next(change);
}

/** Returns a hook that answers. */
function answering<R>(answer: R) {
  return (): Promise<R> => Promise.resolve(answer);
}

/** A middleware that fails, or that passes on a thenable in place of a text. */
function careless(chance: Chance, password: string): Middleware {
  const fail = failure(chance);
  const rows = query(password) as never; // a caller's mistake that types do not prevent
  return chance.one<() => Middleware>([
    () => ({ name: "none" }),
    () => audit(fail),
    () => logger(fail),
    () => delivery(fail),
    () => transcript({ write: fail } as never),
    () => ({ name: "session", session: (_, next) => next().then(() => fail()) }),
    () => ({ name: "tool", tool: fail }),
    () => ({ name: "approval", approval: fail }),
    () => ({ name: "execute", execute: fail }),
    () => ({ name: "stop", stop: fail }),
    () => ({ name: "error", error: fail }),
    () => ({ name: "abort", abort: fail }),
    () => ({ name: "input", input: fail }),
    () => ({ name: "context", [chance.one(["session", "input", "prompt", "turn"])]: passing({ context: [rows] }) }),
    () => ({ name: "request", model: passing({ request: { messages: [user(rows)], instructions: rows } }) }),
    () => ({ name: "refusal", [chance.one(["input", "prompt"])]: answering({ status: "cancelled", reason: rows }) }),
    () => ({ name: "result", [chance.one(["tool", "execute"])]: answering(text(rows)) }),
    () => ({ name: "response", model: answering(reply(rows)) }),
    () => ({ name: "reason", approval: answering(deny(rows)) }),
    () => ({ name: "end", tool: ({ run }) => Promise.reject(run.end(rows)) }),
    () => ({ name: "notice", turn: (ctx, next) => (ctx.emit({ type: "notice", text: rows }), next()) }),
    () => ({ name: "model", model: fail }),
    () => ({ name: "groups", groups: fail }),
    () => when(fail, { name: "when", approval: (_, next) => next() }),
    () => retry({ delay: 0, when: fail }),
    () => serial(fail),
    () => cache({ keyValue: memoryKeyValue(), tools: ["look"], per: fail }),
    () => rateLimit({ per: fail, limit: 1, window: 1_000 }),
  ])();
}

/** Runs agents with failing callbacks. Fails if a run does not end, a rejection is unhandled, or the inside of a thenable is sent. */
export const callbacks: Attack = {
  name: "callbacks",
  async attempt(chance) {
    const password = "the password of the query builder";
    const look: AnyTool = tool({
      name: "look",
      description: "Looks",
      input: z.object({}),
      ...chance.one<object>([{}, { ask: failure(chance) }, { parallel: failure(chance) }, {
        idempotent: true,
      }]),
      execute: (_, { progress, emit }) =>
        chance.one<() => unknown>([
          () => query(password),
          () => ({ rows: [query(password)] }),
          () => progress({ rows: query(password) }),
          () => emit({ type: "data", name: "rows", data: query(password) as never }),
          () => "seen",
          failure(chance),
        ])(),
    });
    const observe = failure(chance);
    const model = scripted({ calls: [["look", {}]] }, "Done.");
    const create = () =>
      agent({ model, tools: [look], use: [careless(chance, password), careless(chance, password)], observe });
    let attacked: ReturnType<typeof create>;
    try {
      attacked = create();
    } catch {
      return 0; // the options were refused
    }
    const { result, events } = attacked.run({ prompt: "Hi", onError: failure(chance), limits: { grace: 50 } });
    const [{ messages }, seen] = [await result, await Array.fromAsync(events)];
    const sent = model.requests.map(({ messages, instructions }) => [messages, instructions]);
    const all = JSON.stringify([messages, seen, sent]);
    expect(!all.includes(password), () => `the inside of a thenable was sent: ${all}`);
    return 1;
  },
};
