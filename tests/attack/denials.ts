/**
 * Attacks on the denials of foreign hooks. A hook denies in a random form, in a random place of its answer, and the call must not run.
 *
 * @module
 */
import { agent, type Middleware, tool } from "@jizai/jizai";
import { claude_hooks } from "@jizai/jizai/middleware/claude_hooks";
import { copilot_hooks } from "@jizai/jizai/middleware/copilot_hooks";
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { yoi_hooks } from "@jizai/jizai/middleware/yoi_hooks";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { randomDenial } from "../support/denials.ts";
import { type Attack, expect } from "./attack.ts";

/** Creates a middleware whose hook before a call returns an answer. */
type Create = (answer: never) => Middleware;

const systems: readonly [Create, ...Create[]] = [
  (answer) => claude_hooks({ PreToolUse: [{ hooks: [() => answer] }] }),
  (answer) => claude_hooks({ PreToolUse: [{ hooks: [() => answer] }] }, { dialect: "claude" }),
  (answer) => claude_hooks({ PreToolUse: [{ hooks: [() => answer] }] }, { dialect: "qodercli" }),
  (answer) => copilot_hooks({ onPreToolUse: () => answer }),
  (answer) => copilot_hooks({ onPreToolUse: () => answer }, { groups: false }),
  (answer) =>
    rpc_hooks({ builtins: { a: { enabled: true } } }, { builtins: { a: () => ({ before_tool: () => answer }) } }),
  (answer) => yoi_hooks({ pre_tool_call: () => answer }),
];

/** Runs a call under a hook that denies it. */
export const denials: Attack = {
  name: "denials",
  async attempt(chance) {
    const answer = randomDenial(chance);
    const create = chance.one(systems);
    const effects: string[] = [];
    const wipe = tool({
      name: "wipe",
      description: "Wipes a disk",
      input: z.object({ disk: z.string() }),
      execute: ({ disk }) => effects.push(disk),
    });
    const middleware = create(answer as never); // an answer of any type
    const model = scripted({ calls: [["wipe", { disk: "a" }]] }, "Done.");
    await agent({ model, tools: [wipe], use: [middleware] }).run({ prompt: "Go", onError: () => {} }).result;
    expect(effects.length === 0, () => `${middleware.name} lets a call run after ${JSON.stringify(answer)}`);
    return 1;
  },
};
