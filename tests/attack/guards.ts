/**
 * Attacks on guards: random stacks of middleware around a file that a guard protects, while the model, hooks and people try to read it under other names.
 *
 * @module
 */
import {
  agent,
  type AnyTool,
  denied,
  memory,
  type Middleware,
  type PersonAnswer,
  type Question,
  type RunResult,
} from "@jizai/jizai";
import type { Files } from "@jizai/jizai/middleware/workspace";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";
import { content, isRead, isSecret, randomPath, wrapper } from "./wrappers.ts";

/** Files that record whether the protected one was opened. */
function watched(): { readonly files: Files; readonly opened: string[] } {
  const kept = memoryFiles({ "secret.txt": content, "open.txt": "open", "a/b.txt": "b" });
  const opened: string[] = [];
  return { opened, files: { ...kept, read: (path) => (opened.push(path), kept.read(path)) } };
}

/** The guard at `approval`, which must hold wherever it stands. */
const guard = permissions({ deny: [{ tool: "*_file", when: isSecret }] });

/** The guard at `tool`, which must hold inside of the workspace, unless another hook overrides calls. */
const toolGuard: Middleware = {
  name: "tool_guard",
  tool: (ctx, next) => isRead(ctx) ? Promise.resolve(denied("It is secret.")) : next(),
};

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

function wrappers(chance: Chance, keepsInputs: boolean): Middleware[] {
  return Array.from({ length: chance.below(4) }, () => wrapper(chance, 2, keepsInputs));
}

/** Returns a workspace, random wrappers and `guards` in a random order. */
function stack(chance: Chance, files: Files, guards: readonly Middleware[]): Middleware[] {
  return shuffled(chance, [workspace(files), ...wrappers(chance, false), ...guards]);
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

/** Returns an agent with a guard. A guard at `approval` also holds for an agent that is its tool. */
function target(chance: Chance, files: Files) {
  const limits = { turns: 6 };
  if (chance.below(2) === 0) {
    const use = [...asking(chance), workspace(files), ...shuffled(chance, [...wrappers(chance, true), toolGuard])];
    return { use, attacked: agent({ model: script(chance), use, limits }) };
  }
  const helper: AnyTool = asTool(
    agent({ name: "helper", model: script(chance), use: stack(chance, files, []) }),
    { description: "Helps" },
  );
  const use = [...asking(chance), ...stack(chance, files, [guard])];
  return { use, attacked: agent({ model: script(chance), tools: [helper], use, limits }) };
}

/** Runs random agents whose guard denies one file. Fails if the file is read. */
export const guards: Attack = {
  name: "guards",
  async attempt(chance) {
    const { files, opened } = watched();
    const { use, attacked } = target(chance, files);
    const options = { session: "s", store: memory(), onError: () => {} };
    let result: RunResult = await attacked.run({ ...options, prompt: "Go" }).result;
    for (let leg = 0; leg < 5 && result.status === "paused"; leg++) {
      const answers = result.questions.map((question) => answerOf(chance, question));
      result = await attacked.resume({ ...options, answers }).result;
    }
    const names = use.map(({ name }) => name).join(", ");
    expect(!opened.includes("secret.txt"), () => `secret.txt was read behind the guard in a stack of ${names}`);
    expect(!JSON.stringify(result.messages).includes(content), () => `secret.txt reached the model through ${names}`);
    return 1;
  },
};
