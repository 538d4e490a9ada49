/**
 * Attacks with values that JSON cannot hold: BigInt, cycles, functions, lone surrogates and deep nesting, in inputs, results and events.
 *
 * @module
 */
import {
  agent,
  type AnyTool,
  memory,
  type Middleware,
  Pause,
  type PersonAnswer,
  type Schema,
  serve,
  state,
  tool,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import * as z from "zod";
import type { Chance } from "../support/seeded.ts";
import { resultFields, resultWith, unreadable } from "../support/hostile_values.ts";
import { eventsOf, post } from "../support/requests.ts";
import { type Attack, expect } from "./attack.ts";

function cycle(): unknown {
  const value: { self?: unknown } = {};
  value.self = value;
  return value;
}

function deep(levels: number): unknown {
  let value: unknown = "deep";
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

function strange({ one, below }: Chance): unknown {
  return one<() => unknown>([
    () => 1n,
    () => ({ deep: [{ big: 2n ** 64n }] }),
    cycle,
    () => deep(1 + below(300)),
    () => deep(20_000),
    () => "\ud800 alone",
    () => ({ text: "\udc00" }),
    () => undefined,
    () => NaN,
    () => ({
      toJSON() {
        throw new Error("toJSON() failed");
      },
    }),
    () => ({ deep: [{ toJSON: () => 1n }] }),
    () => ({
      get deep() {
        throw new Error("The getter failed");
      },
    }),
    () => () => "function",
    () => Symbol("symbol"),
    () => new Map([["a", 1]]),
    () => ({ type: "result", status: "ok", parts: [null] }),
    () => ({ type: "result", status: "ok", parts: [{ type: "text" }] }),
    () => ({ type: "result", status: "ok", parts: [{ type: "text", text: 1n }] }),
    () => ({ type: "result", status: "ok", parts: [], artifacts: cycle() }),
    () => ({ type: "result", status: "ok", parts: [{ type: "text", text: "\ud800" }] }),
    () => resultWith(one(resultFields)),
    () => resultWith(one(resultFields), one<unknown>([1n, 5, null, { big: 1n }, cycle(), unreadable["a proxy"]?.()])),
    ...Object.values(unreadable),
  ])();
}

/** Returns a value as text, also if it cannot be read. */
function text(value: unknown): string {
  try {
    return String(value);
  } catch {
    return "unreadable";
  }
}

/** A tool that returns, throws, reports or emits strange values. */
function strangeTool(chance: Chance): AnyTool {
  let asked = false;
  return tool({
    name: "look",
    description: "Looks",
    input: chance.one<Schema>([
      z.object({ key: z.unknown() }),
      z.object({ key: z.unknown() }),
      z.object({ key: z.unknown().transform(() => strange(chance)) }),
    ]),
    ask: chance.below(3) === 0,
    execute: (_, { progress, emit, run }) =>
      chance.one<() => unknown>([
        () => {
          if (asked) return "done";
          asked = true;
          const schema = { strange: strange(chance) };
          throw chance.below(2) === 0
            ? run.pause("Really?", { schema })
            : new Pause([{ questions: ["Really?"], schema }], strange(chance));
        },
        () => strange(chance),
        () => strange(chance),
        () => {
          throw strange(chance);
        },
        () => (progress(strange(chance)), "done"),
        () => (emit({ type: "data", name: "d", data: strange(chance) as never }), "done"),
      ])(),
  });
}

const kept = state<unknown>("kept", () => undefined);

/** A middleware that puts strange values into calls. */
function strangeMiddleware(chance: Chance): Middleware {
  const input = { key: strange(chance) }; // the same for each call, so that an answer is about the input that was asked about
  return chance.one<() => Middleware>([
    () => ({ name: "none" }),
    () => ({ name: "input", tool: (_, next) => next({ input }) }),
    () => ({
      name: "state",
      tool(ctx, next) {
        try {
          kept.set(ctx, strange(chance));
        } catch (error) {
          expect(String(error).includes("Cannot set the state"), () => `the error does not name the state: ${error}`);
        }
        return next();
      },
    }),
    () => ({ name: "context", turn: (ctx, next) => next({ context: [...ctx.context, "\udfff"] }) }),
    () => ({
      name: "ask",
      approval: () => Promise.resolve({ type: "ask", questions: ["Really?"], schema: { strange: strange(chance) } }),
    }),
    () => ({
      name: "output",
      prompt: async (_, next) => ({ ...await next(), output: strange(chance) }),
    }),
    () => ({ name: "edit", approval: () => Promise.resolve({ type: "allow", input }) }),
  ])();
}

/** Runs agents on strange values. Fails if a run fails, or if its session stays busy. */
export const values: Attack = {
  name: "values",
  async attempt(chance) {
    const errors: unknown[] = [];
    const store = durable(memory().journal);
    const model = scripted(
      { calls: [["look", { key: "\ud800" }], ["look", {}]] },
      "Done.",
      "Again.",
      "Again.",
      "Again.",
    );
    const use = [strangeMiddleware(chance)];
    const attacked = agent({ model, tools: [strangeTool(chance)], use });
    const onError = (error: unknown) => void errors.push(error);
    const app = serve(attacked, { store, onError, session: () => "s" });
    const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
    const last = events.at(-1);
    expect(
      last?.type === "run.finished" || last?.type === "run.paused",
      () => `the run ended with ${JSON.stringify(last)}: ${errors.map(text)}`,
    );
    if (last?.type === "run.paused") {
      const answers = last.questions.map(({ callId }): PersonAnswer =>
        callId === undefined
          ? { type: "reply", text: "Yes" }
          : { type: "approve", callId, input: { key: strange(chance) } }
      );
      const options = { session: "s", store };
      const first = await attacked.resume({ ...options, answers }).result;
      let { status, reason, error, questions } = first;
      if (reason === "session") questions = last.questions; // the answers were refused, and the pause is kept
      for (let leg = 0; leg < 5 && (status === "paused" || reason === "session"); leg++) {
        const denials = questions.map(({ callId }): PersonAnswer =>
          callId === undefined ? { type: "reply", text: "No" } : { type: "deny", callId }
        );
        ({ status, reason, error, questions } = await attacked.resume({ ...options, answers: denials }).result);
      }
      expect(
        status === "done",
        () => `the pause was lost: ${first.status} ${first.error}, then ${status} ${reason} ${error}`,
      );
      return 2;
    }
    const next = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
    expect(next.at(-1)?.type === "run.finished", () => `the session stays busy: ${JSON.stringify(next.at(-1))}`);
    return 2;
  },
};
