/**
 * Attacks on guards: random stacks of middleware around a file that a guard protects, while the model, hooks and people try to read it under other names.
 *
 * @module
 */
import {
  agent,
  type AnyTool,
  memory,
  type Middleware,
  only,
  type PersonAnswer,
  type Question,
  type RunResult,
  text,
  when,
} from "@jizai/jizai";
import type { Files } from "@jizai/jizai/kit";
import { human } from "@jizai/jizai/middleware/human";
import { optional } from "@jizai/jizai/middleware/optional";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { retry } from "@jizai/jizai/middleware/retry";
import { serial } from "@jizai/jizai/middleware/serial";
import { timeout } from "@jizai/jizai/middleware/timeout";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

const content = "the content of the protected file";

const spellings = [
  "secret.txt",
  "./secret.txt",
  "a/../secret.txt",
  ".//secret.txt",
  "../secret.txt",
  "open.txt",
] as const;

/** Files that record whether the protected one was opened. */
function watched(): { readonly files: Files; readonly opened: string[] } {
  const kept = memoryFiles({ "secret.txt": content, "open.txt": "open", "a/b.txt": "b" });
  const opened: string[] = [];
  return { opened, files: { ...kept, read: (path) => (opened.push(path), kept.read(path)) } };
}

const isSecret = (input: unknown) => JSON.stringify(input)?.includes('"secret.txt"') === true;

/** The guard that must hold, wherever it stands. */
const guard = permissions({ deny: [{ tool: "*_file", when: isSecret }] });

function randomPath({ one }: Chance) {
  return { path: one(spellings) };
}

/** Creates a middleware that does something to calls, as applications do. */
function wrapper(chance: Chance, depth: number): Middleware {
  const { below, one } = chance;
  const input = randomPath(chance);
  switch (below(depth > 0 ? 14 : 11)) {
    case 0:
      return retry({ attempts: 2 });
    case 1:
      return timeout(5_000);
    case 2:
      return serial();
    case 3:
      return {
        name: "edit",
        approval: (_, next) => next().then((inner) => inner.type === "deny" ? inner : { type: "allow", input }),
      };
    case 4:
      return { name: "rename", tool: (ctx, next) => next(ctx.name === "peek" ? { name: "read_file" } : {}) };
    case 5:
      return {
        name: "rename_and_change",
        tool: (ctx, next) => next(ctx.name === "peek" ? { name: "read_file", input } : {}),
      };
    case 6:
      return {
        name: "change",
        tool: (ctx, next) => next(ctx.tool ? { input: { ...Object(ctx.input), ...input } } : {}),
      };
    case 7:
      return cache();
    case 8:
      return human(() => one([true, false, { allow: true, input }]));
    case 9:
      return {
        name: "answer",
        tool: (ctx, next) => ctx.name === "nothing" ? Promise.resolve(text("answered")) : next(),
      };
    case 10: {
      const group = one<"alone" | "parallel">(["alone", "parallel"]);
      return { name: "groups", groups: () => group };
    }
    case 11:
      return when(() => true, wrapper(chance, depth - 1));
    case 12:
      return optional(wrapper(chance, depth - 1));
    default:
      return callsOnly(wrapper(chance, depth - 1));
  }
}

/** Limits a wrapper to some tools. */
function callsOnly(wrapped: Middleware): Middleware {
  const { tool, approval, execute } = wrapped;
  return only("read_file|peek", {
    name: "only",
    ...(tool && { tool }),
    ...(approval && { approval }),
    ...(execute && { execute }),
  });
}

/** A cache of results by input, as an application may write it. */
function cache(): Middleware {
  const kept = new Map<string, Awaited<ReturnType<typeof text>>>();
  return {
    name: "cache",
    async execute(ctx, next) {
      const key = JSON.stringify([ctx.tool.name, ctx.input]);
      const result = kept.get(key) ?? await next();
      kept.set(key, text("again"));
      return result;
    },
  };
}

function shuffled<T>({ below }: Chance, items: readonly T[]): T[] {
  const rest = [...items];
  return items.map(() => rest.splice(below(rest.length), 1)).flat();
}

function script(chance: Chance) {
  const { below, one } = chance;
  const steps = Array.from({ length: 1 + below(3) }, () => ({
    calls: Array.from({ length: 1 + below(3) }, () => {
      const name = one(["read_file", "peek", "peek", "helper", "change_directory"]);
      if (name === "helper") return [name, { prompt: "Read it." }] as const;
      return [name, name === "change_directory" ? { path: "a" } : randomPath(chance)] as const;
    }),
  }));
  return scripted(...steps, ...Array.from({ length: 6 }, () => "Done."));
}

function stack(chance: Chance, files: Files, guarded: boolean): Middleware[] {
  const wrappers = Array.from({ length: chance.below(4) }, () => wrapper(chance, 2));
  return shuffled(chance, [workspace(files), ...wrappers, ...guarded ? [guard] : []]);
}

/** Makes some calls ask a person. */
function asking({ below }: Chance): Middleware[] {
  return below(2) === 0 ? [] : [permissions({ ask: ["read_*", "peek"] })];
}

function answerOf(chance: Chance, { callId = "", input }: Question): PersonAnswer {
  const edit = { ...Object(input), ...randomPath(chance) };
  return chance.one<PersonAnswer>([
    { type: "approve", callId },
    { type: "approve", callId, input: edit },
    { type: "approve", callId, input: edit },
    { type: "approve", callId, always: "tool" },
    { type: "deny", callId },
    { type: "reply", callId, text: "never mind" },
  ]);
}

/** Runs random agents whose guard denies one file. Fails if the file is read. */
export const guards: Attack = {
  name: "guards",
  async attempt(chance) {
    const { files, opened } = watched();
    const helper: AnyTool = asTool(
      agent({ name: "helper", model: script(chance), use: stack(chance, files, false) }),
      { description: "Helps" },
    );
    const use = [...asking(chance), ...stack(chance, files, true)];
    const attacked = agent({ model: script(chance), tools: [helper], use, limits: { turns: 6 } });
    const options = { session: "s", store: memory() };
    let result: RunResult = await attacked.run({ ...options, prompt: "Go" }).result;
    for (let leg = 0; leg < 5 && result.status === "paused"; leg++) {
      const answers = result.questions.map((question) => answerOf(chance, question));
      result = await attacked.resume({ ...options, answers }).result;
    }
    const stack_ = use.map(({ name }) => name).join(", ");
    expect(!opened.includes("secret.txt"), () => `secret.txt was read behind the guard in a stack of ${stack_}`);
    expect(!JSON.stringify(result.messages).includes(content), () => `secret.txt reached the model through ${stack_}`);
    return 1;
  },
};
