/**
 * Attacks on the input that guards and foreign hooks decide about. Random stacks of them stand around a tool whose schema converts inputs, and hooks, guards and
 * people change the input. A guard that denies a number must hold for every form of it.
 *
 * @module
 */
import { agent, allow, deny, memory, type Middleware, type PersonAnswer, type Question, tool } from "@jizai/jizai";
import { claude_hooks } from "@jizai/jizai/middleware/claude_hooks";
import { copilot_hooks } from "@jizai/jizai/middleware/copilot_hooks";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

/** The numbers that inputs contain are below this one. */
const numbers = 5;

/** Schemas that convert, complete or rename what the model wrote. */
const schemas: readonly [z.ZodType<{ n: number }>, ...z.ZodType<{ n: number }>[]] = [
  z.object({ n: z.coerce.number() }),
  z.object({ n: z.string().or(z.number()).transform(Number) }),
  z.preprocess((given) => ({ n: Number(Object(given).n ?? Object(given).m ?? 3) }), z.object({ n: z.number() })),
  z.object({ n: z.coerce.number(), more: z.number().default(7) }),
  z.object({ n: z.coerce.number() }).refine(async () => await true).transform(({ n }) => ({ n: n % numbers })),
];

/** A guard: the number that it denies, and the numbers that it puts in place of others. */
interface Judge {
  readonly denied: number;
  readonly changes: readonly number[];
}

function numberIn(input: unknown): number {
  return Number(Object(input).n);
}

/** Returns the input that a judge puts in place of another one; undefined if it changes nothing. */
function changed({ denied, changes }: Judge, input: unknown): { readonly n: string } | undefined {
  const number = numberIn(input);
  const after = changes[number];
  return after === undefined || after === number || after === denied ? undefined : { n: `${after}` };
}

type Create = (judge: Judge) => Middleware;

/** Kinds of guards. Each decides about what runs, wherever it stands. */
const kinds: readonly [Create, ...Create[]] = [
  ({ denied }) => permissions({ deny: [{ tool: "*", when: (input) => numberIn(input) === denied }] }),
  (judge) => ({
    name: "guard",
    async approval({ input }, next) {
      if (numberIn(input) === judge.denied) return deny("No.");
      const edit = changed(judge, input);
      return edit ? allow({ input: edit }) : await next();
    },
  }),
  (judge) =>
    claude_hooks({
      PreToolUse: [{
        hooks: [({ tool_input }) => {
          if (numberIn(tool_input) === judge.denied) return { decision: "block" };
          const updatedInput = changed(judge, tool_input);
          return updatedInput ? { hookSpecificOutput: { hookEventName: "PreToolUse", updatedInput } } : {};
        }],
      }],
    }),
  ...[true, false].map((groups): Create => (judge) =>
    copilot_hooks({
      onPreToolUse({ toolArgs }) {
        if (numberIn(toolArgs) === judge.denied) return { permissionDecision: "deny" };
        const modifiedArgs = changed(judge, toolArgs);
        return modifiedArgs ? { modifiedArgs } : {};
      },
    }, { groups })
  ),
  ({ denied }) => {
    const approve = (params: unknown) => ({ approved: numberIn(Object(params).arguments) !== denied });
    return rpc_hooks({ builtins: { a: { enabled: true } } }, { builtins: { a: () => ({ approve_tool: approve }) } });
  },
];

/** Creates a hook that changes numbers, and no guard. */
function hook({ changes }: Judge): Middleware {
  return {
    name: "hook",
    tool: (ctx, next) => {
      const after = changes[numberIn(ctx.input)];
      return after === undefined ? next() : next({ input: { n: after } });
    },
  };
}

function answerOf({ one, below }: Chance, { callId = "" }: Question): PersonAnswer {
  return one<PersonAnswer>([
    { type: "approve", callId },
    { type: "approve", callId, input: { n: below(numbers) } },
  ]);
}

/** Runs random agents. Fails if a tool runs with a number that a guard denies. */
export const judges: Attack = {
  name: "judges",
  async attempt(chance) {
    const { below, one } = chance;
    const judge = (): Judge => ({
      denied: below(numbers),
      changes: Array.from({ length: numbers }, (_, number) => below(2) === 0 ? below(numbers) : number),
    });
    const guards = Array.from({ length: 1 + below(3) }, () => ({ create: one(kinds), judge: judge() }));
    const use = guards.map(({ create, judge }) => create(judge));
    if (below(2) === 0) use.splice(below(use.length + 1), 0, hook(judge()));
    const ran: number[] = [];
    const pay = tool({
      name: "pay",
      description: "",
      input: one(schemas),
      ask: below(2) === 0,
      execute: ({ n }) => void ran.push(n),
    });
    const input = () =>
      one<object>([{ n: below(numbers) }, { n: `${below(numbers)}` }, { m: below(numbers) }, {}, { n: 1, more: 2 }]);
    const model = scripted({ calls: [["pay", input()], ["pay", input()]] }, "Done.");
    const assistant = agent({ model, tools: [pay], use });
    const options = { session: "s", store: memory(), onError: () => {} };
    let result = await assistant.run({ ...options, prompt: "Go" }).result;
    for (let legs = 0; legs < 6 && result.status === "paused"; legs++) {
      const answers = result.questions.map((question) => answerOf(chance, question));
      result = await assistant.resume({ ...options, answers }).result;
      expect(result.status !== "failed", () => `it failed: ${result.error}`);
    }
    const denied = guards.map(({ judge }) => judge.denied);
    const names = use.map(({ name }) => name).join();
    expect(
      !ran.some((number) => denied.includes(number)),
      () => `pay(${ran}) ran under ${names}, which deny ${denied}`,
    );
    return 1;
  },
};
