/**
 * Hooks that ask the person at some point, before or after `next()`. The run pauses unless the person answers immediately.
 *
 * @module
 */
import { continueWith, type Middleware, pause, type Scope, state } from "@jizai/jizai";
import { type Chance, hashOf, seeded } from "../seeded.ts";
import { type Vars, word } from "./person.ts";

/** The questions, and the person's answers. */
interface Received {
  /** Returns the person's answer; `undefined` if the person must be asked. */
  reply(ctx: Scope<Vars>, question: string): string | undefined;
}

/** Records the questions and replies of one hook. */
function recordedReplies(name: string): Received {
  const answers = state(`${name}.said`, (): Readonly<Record<string, string>> => ({}));
  return {
    reply(ctx, question) {
      const { [question]: before } = answers.get(ctx);
      const reply = ctx.run.answers.find((answer) => answer.type === "reply" && answer.callId === undefined);
      const now = ctx.vars.atOnce ? word : before === "" && reply?.type === "reply" ? reply.text : before ?? "";
      answers.update(ctx, (answers) => ({ ...answers, [question]: now }));
      return now === "" ? undefined : now;
    },
  };
}

/** Returns the subject of a hook's question: a call, a turn, a failure, or the run. */
function subjectOf(ctx: object): string {
  const { call, index, turn, source, name } = ctx as Readonly<Record<string, unknown>>; // each point has some of these fields
  const id = typeof call === "object" && call !== null && "id" in call ? call.id : call;
  return [id ?? index ?? turn, source, source && name].filter((each) => each !== undefined).join(" ");
}

const points = [
  ...["session", "prompt", "turn", "model", "tool", "tool", "approval", "execute", "execute"],
  ...["stop", "compact", "subagent", "error"],
] as const;

/** A hook that asks at one point, once about each subject. */
export function asks({ below }: Chance, name: string): () => Middleware<Vars> {
  const point = points[below(points.length)] ?? "tool";
  const late = below(2) === 0;
  const salt = below(1_000);
  const { reply } = recordedReplies(name);

  async function hook<R>(ctx: Scope<Vars>, next: () => Promise<R>): Promise<R> {
    const question = `${name} at ${point}: ${subjectOf(ctx)}?`;
    if (seeded(hashOf(`${salt} ${question}`)).below(3) === 0 || (late && isDoneAgain(ctx))) return await next();
    const result = late ? await next() : undefined;
    if (reply(ctx, question) === undefined) throw ctx.run.pause(question);
    return result ?? await next();
  }

  /** Returns true at points where a pause after the work repeats the work. */
  function isDoneAgain(ctx: object): boolean {
    const tool = "tool" in ctx ? ctx.tool as { readonly idempotent?: boolean } : undefined; // the context of execute has a tool
    return point === "subagent" || (point === "execute" && !tool?.idempotent);
  }

  return () => ({ name, [point]: hook }) as Middleware<Vars>; // this hook fits all of these points
}

/** Waits at every point, before and after `next()`. */
export function lingers(): Middleware<Vars> {
  async function hook<R>({ vars: { linger } }: Scope<Vars>, next: () => Promise<R>): Promise<R> {
    await linger();
    const result = await next();
    await linger();
    return result;
  }
  return Object.fromEntries([["name", "lingers"], ...points.map((point) => [point, hook])]); // this hook fits all of these points
}

/** Asks before the prompt is accepted, and adds the reply to it. */
export function asksBeforePrompt(_: Chance, name: string): () => Middleware<Vars> {
  const { reply } = recordedReplies(name);
  return () => ({
    name,
    async prompt(ctx, next) {
      const colour = reply(ctx, "Which colour?");
      if (colour === undefined) throw ctx.run.pause("Which colour?");
      return await next({ context: [...ctx.context, `The colour is ${colour}.`] });
    },
  });
}

/** Asks before the agent finishes, and continues with the reply. */
export function asksBeforeEnd(_: Chance, name: string): () => Middleware<Vars> {
  const { reply } = recordedReplies(name);
  return () => ({
    name,
    async stop(ctx, next) {
      const verdict = await next();
      if (verdict.type !== "finish" || ctx.continuations > 0) return verdict;
      const answer = reply(ctx, "Is that all?");
      if (answer === undefined) return pause("Is that all?");
      return continueWith(`${answer}, they say.`);
    },
  });
}
