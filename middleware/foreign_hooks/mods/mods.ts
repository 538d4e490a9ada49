/**
 * Runs mods of Claude Code: modules with hooks for the events of an agent.
 *
 * @module
 */
import { callHooks, hasCallHooks } from "./calls.ts";
import { type ClassicPort, memoryStore, type ModsOptions, optionNames, type Resolved } from "./options.ts";
import { promptHooks } from "./prompts.ts";
import { expectMod, type Mod } from "./registration.ts";
import { ModRuns, name } from "./run.ts";
import { sessionHooks } from "./session.ts";
import { stepHook } from "./steps.ts";
import type { Middleware, Run } from "../../../mod.ts";
import { expectChoice, expectNames, Locks } from "../../../src/core/kit.ts";

export type { Mod, ModField, ModFunction, ModModule, ModOption, On, Registration, Tier } from "./registration.ts";
export type { ClassicEvents, ModsOptions, ModStore } from "./options.ts";
export type { Files } from "../../../src/core/kit.ts";

/**
 * Runs mods of Claude Code, unchanged: modules that export `register(on, options)`, and whose hooks are Koa-style functions `($, e, next)`. Subagents
 * inherit them.
 *
 * | hooks of | run | and can |
 * |---|---|---|
 * | `session.start`, `session.end` | when a run begins and ends | observe |
 * | `prompt.submit` | for the prompt, and for messages to a run while it works | rewrite it, drop it, add context |
 * | `prompt.context` | when a session begins, and after a compaction | add blocks of context |
 * | `prompt.compose`, `prompt.section`, `tool.describe`, `agent.offer` | before a request | change the instructions and the tools |
 * | `turn.start`, `turn.complete` | around the answer to a prompt | observe, add a line beneath the answer |
 * | `turn.step` | around a request, as a generator of chunks | rewrite, hold and drop chunks, answer, choose the model and the effort |
 * | `tool.call` | around a call | deny it, answer it, change its arguments and its result, add context |
 * | `tool.check` | for the decision about a call | allow, ask, deny |
 * | `session.append` | before a message enters the transcript | change its texts |
 * | `session.compact` | around a compaction | skip it, change its messages |
 * | `agent.spawn` | before a subagent starts | deny it, change its prompt and its model |
 * | `plugin.register`, `engine.create` | when mods are loaded | refuse a mod, add nouns to `$` |
 * | `fs.read` and all other calls of `$` | when another mod makes them | answer, deny |
 *
 * The events `classic.*` are an import of their own, the option `classic`. A bundler resolves the name `claude-code`, which mods import, to
 * `middleware/mods/claude_code`. `middleware/mods/exported` writes a middleware of ours as a mod.
 *
 * A `warning` reports hooks of events that do not occur on a server. One turn of Claude Code is one run, and its steps are our turns.
 *
 * A hook that throws, takes more than 10 seconds of its own time, or returns a wrong answer is skipped: the next one runs in its place, or the result of its
 * `next()` stands. A `warning` names the mod and the event, and `onError` receives the reason. With `failure: "closed"`, such a hook refuses the call, the
 * prompt or the subagent, unless its `.catch()` handler gives a valid answer.
 *
 * A module is evaluated anew for each run, and again when a run continues after a pause: on a server, its variables would be shared by all users. So a mod is
 * given as a function that evaluates its module. A bundler makes one: for example, esbuild bundles a mod with `--format=iife --global-name=mod`, which is put
 * into a function that returns `mod`. A module that keeps nothing can be given itself, with `shared: true`.
 *
 * A deny of a guard is final: no mod allows what an inner guard has denied. An "allow" of `tool.check` answers the questions of the tool and of inner guards.
 * So `mods()` stands before `permissions()` in `use`. A call that a mod answers without `next()` is approved by the guards all the same, unless
 * `answersAreApproved` is set. `$.ui.log()` and `$.ui.toast()` are `notice` events. Texts in `context` go to the model only.
 *
 * Differences from Claude Code:
 *
 * - A second `next()` of a hook at `tool.call` rejects, and the first result is kept. To repeat a call, use a hook at `execute`, such as `retry()`.
 * - Calls of one response run one after another if a mod has a hook at `tool.call`. An unknown tool and an invalid input run no hook.
 * - Models are found by the option `models`. A hook that asks for one that is not known fails.
 * - `$` serves what a server has: `state`, `store`, `clock`, `model`, `session`, `tool.list` and `tool.register`. `http` reaches the hosts of the option `hosts`.
 *   Files, variables and settings are options. Processes, audio, MCP calls, `$.tool.call()`, `$.agent.spawn()` and `$.session.compact()` reject.
 * - `$.prompt.submit()` continues the run with the text once the answer is complete. The tokens of `$.model` do not count for the run.
 *
 * Throws a `TypeError` if a mod has no name, is not a function without `shared: true`, or lacks the value of a required option.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { mods, type On } from "@jizai/jizai/middleware/mods";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * // hooks/register.ts of a mod, as a bundler puts it into a function
 * function evaluate() {
 *   const register = (on: On, { word }: { word: string }) => {
 *     on("tool.call", { tool: "Bash" }, (_$: unknown, e: { command: string }, next: (e: object) => unknown) => {
 *       if (e.command.includes(word)) return { deny: "Nothing is deleted here." };
 *       return next(e);
 *     });
 *   };
 *   return { register };
 * }
 *
 * const bash = tool({
 *   name: "Bash",
 *   description: "Runs a command",
 *   input: z.object({ command: z.string() }),
 *   execute: ({ command }) => `ran ${command}`,
 * });
 * const assistant = agent({
 *   model: scripted({ calls: [["Bash", { command: "rm -rf /" }], ["Bash", { command: "ls" }]] }, "Done."),
 *   tools: [bash],
 *   use: [mods({ name: "no-delete", module: evaluate, options: { word: "rm -rf" } }, { failure: "closed" })],
 * });
 *
 * const { messages } = await assistant.run("Clean up").result;
 * const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
 * assertEquals(results.map(({ status }) => status), ["denied", "ok"]);
 * ```
 */
export function mods(all: Mod | readonly Mod[], options: ModsOptions = {}): Middleware {
  const operation = "Cannot create mods()";
  expectNames(operation, options, optionNames);
  const { failure = "home", lifetime = "run", groups = true } = options;
  expectChoice(operation, "failure", failure, ["home", "closed"]);
  expectChoice(operation, "lifetime", lifetime, ["run", "session"]);
  const list = Array.isArray(all) ? all as readonly Mod[] : [all as Mod]; // the type of a list is lost
  for (const mod of list) expectMod(mod);
  const names = list.map((mod) => mod.name);
  const twice = names.find((each, index) => names.indexOf(each) !== index);
  if (twice !== undefined) throw new TypeError(`${operation}: two mods have the name "${twice}"`);
  const { classic, store = memoryStore() } = options;
  const port = classic?.["~events"] as ClassicPort | undefined; // made by `middleware/mods/classic`
  const resolved: Resolved = { ...options, classic: port, store, locks: new Locks() };
  const runs = new ModRuns(list, resolved);
  const agents = new WeakMap<Run, ReadonlySet<string>>();
  return {
    name,
    inherit: true,
    ...(groups && {
      async groups(ctx) {
        const run = await runs.of(ctx);
        return ctx.parallel || !hasCallHooks(run) ? "parallel" : "alone";
      },
    }),
    ...sessionHooks(runs, agents),
    ...promptHooks(runs),
    ...stepHook(runs, ({ run }) => agents.get(run) ?? new Set()),
    ...callHooks(runs),
  };
}
