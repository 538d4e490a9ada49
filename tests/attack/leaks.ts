/**
 * A tool, a middleware and a model that leak a secret in random ways.
 *
 * @module
 */
import { type AnyTool, type Middleware, type Scope, state, text, tool, ToolError } from "@jizai/jizai";
import type { ScriptedStep } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import type { Chance } from "../support/seeded.ts";

/** The secret. */
export const secret = "hunter2-Kq8ZpW";

/** Splits a text at random offsets. */
function split(value: string, { below }: Chance): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < value.length;) {
    const size = 1 + below(value.length);
    pieces.push(value.slice(at, at + size));
    at += size;
  }
  return pieces;
}

/** Returns the secret within a random text. */
export const around = (chance: Chance) =>
  `${chance.one(["", "a ", "hunter2", "hunter2-", "\\", '"'])}${secret}${chance.one(["", " b", "hunter", "\\n"])}`;

function parts(chance: Chance) {
  return split(around(chance), chance).map((piece) => ({ type: "text" as const, text: piece }));
}

/** Sends a message to a run. */
export type Steer = (run: string, text: string) => Promise<void>;

/** A tool that leaks the secret in a random way. */
export function leaking(chance: Chance, steer: Steer): AnyTool {
  const { one } = chance;
  return tool({
    name: "leak",
    description: "Leaks",
    input: z.object({ key: z.string() }),
    ask: chance.below(3) === 0,
    async execute(_, { progress, emit, run }) {
      await Promise.resolve();
      return one<() => unknown>([
        () => around(chance),
        () => ({ deep: [{ key: around(chance) }] }),
        () => ({ type: "result", status: "ok", parts: parts(chance) }),
        () => ({ type: "result", status: "ok", parts: [{ type: "text", text: "x" }], person: around(chance) }),
        () => ({ type: "result", status: "ok", parts: [], context: split(around(chance), chance) }),
        () => ({ type: "result", status: "ok", parts: [], artifacts: [{ uri: `https://x/${secret}`, name: secret }] }),
        () => steer(run.id, around(chance)).then(() => "steered"),
        () => (progress({ done: around(chance) }), "done"),
        () => (emit({ type: "notice", text: around(chance) }), "done"),
        () => (emit({ type: "data", name: "d", data: { [secret.slice(0, 3)]: [around(chance)] } }), "done"),
        () => {
          throw new ToolError(around(chance));
        },
        () => {
          throw new Error(around(chance));
        },
      ])();
    },
  });
}

const kept = state<unknown>("kept", () => undefined, { lifetime: "session" });

/** A hook that ends the run with the secret as the reason, in any way. */
function ending(chance: Chance) {
  const as = chance.one<"done" | "limit" | "failed" | "cancelled">(["done", "limit", "failed", "cancelled"]);
  const options = { as, rollback: chance.below(2) === 0, withhold: chance.below(2) === 0 };
  return async ({ run }: Scope, next: () => Promise<unknown>) => {
    if (chance.below(2) === 0) throw run.end(around(chance), options);
    const result = await next();
    run.end(around(chance), options);
    return result;
  };
}

/** A middleware inside of `redact()` that leaks the secret. */
export function careless(chance: Chance): Middleware {
  return chance.one<() => Middleware>([
    () => ({ name: "none" }),
    () => ({ name: "context", turn: (ctx, next) => next({ context: [...ctx.context, around(chance)] }) }),
    () => ({ name: "session", session: (ctx, next) => next({ context: [...ctx.context, around(chance)] }) }),
    () => ({ name: "prompt", prompt: (ctx, next) => next({ context: [...ctx.context, around(chance)] }) }),
    () => ({
      name: "message",
      input: (ctx, next) => ctx.source === "reply" ? next() : next({ context: [...ctx.context, around(chance)] }),
    }),
    () => ({
      name: "state",
      turn(ctx, next) {
        kept.set(ctx, { [around(chance)]: [around(chance)] });
        return next();
      },
    }),
    () => ({ name: "end", [chance.one(["turn", "tool", "execute", "stop", "prompt", "session"])]: ending(chance) }),
    () => ({ name: "input", tool: (_, next) => next({ input: { key: around(chance) } }) }),
    () => ({ name: "edit", approval: () => Promise.resolve({ type: "allow", input: { key: around(chance) } }) }),
    () => ({
      name: "result",
      prompt: async (_, next) => ({ ...await next(), text: around(chance), output: [secret] }),
    }),
    () => ({ name: "reason", approval: () => Promise.resolve({ type: "deny", reason: around(chance) }) }),
    () => ({
      name: "question",
      approval: () => Promise.resolve({ type: "ask", questions: split(around(chance), chance) }),
    }),
    () => ({ name: "answer", tool: async (_, next) => (await next(), text(around(chance))) }),
    () => ({
      name: "pause",
      stop: ({ run }, next) => run.answers.length > 0 ? next() : Promise.reject(run.pause(around(chance))),
    }),
    () => ({ name: "stop", stop: () => Promise.resolve({ type: "pause", question: around(chance) }) }),
    () => ({ name: "notice", prompt: (ctx, next) => (ctx.emit({ type: "notice", text: around(chance) }), next()) }),
  ])();
}

/** A random step of a model that leaks the secret. */
export function step(chance: Chance): ScriptedStep {
  const { below } = chance;
  const calls = Array.from({ length: below(3) }, () => {
    const name = chance.one(["leak", "leak", "helper", secret]);
    return [name, name === "helper" ? { prompt: around(chance) } : { key: around(chance) }] as const;
  });
  if (below(3) > 0) {
    return {
      text: split(around(chance), chance),
      ...(below(2) === 0 && { reasoning: split(around(chance), chance) }),
      calls,
    };
  }
  const reads = split(around(chance), chance).flatMap((piece) => [
    [{ type: "text", text: piece } as const],
    [{ type: "reasoning", text: "hm" } as const],
  ]);
  return { reads: [...reads, [{ type: "finish", reason: "stop", usage: { input: 1, output: 1 } }]] };
}
