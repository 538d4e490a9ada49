/**
 * Decides which calls may run, by rules.
 *
 * @module
 */
import { allow, type ApprovalContext, ask, deny, type Middleware } from "../../mod.ts";

/** A tool's name, in which `*` stands for any characters; or that, and more. */
export type Rule<V = unknown> = string | RuleOptions<V>;

/** A rule that says more than a name. */
export interface RuleOptions<V = unknown> {
  /** The tool's name, in which `*` stands for any characters. Default: every tool. */
  readonly tool?: string;
  /** Whether it holds for this input, which is JSON as it would run. One that throws denies the call. */
  readonly when?: (input: unknown, ctx: ApprovalContext<V>) => boolean | Promise<boolean>;
  /** Where it denies, what the model is told; where it asks, what the person is. */
  readonly why?: string;
}

/** Rules, by what they decide. */
export interface PermissionsOptions<V = unknown> {
  /** May run, even where the tool itself or a guard after this one asks. */
  readonly allow?: readonly Rule<V>[];
  /** A person decides. */
  readonly ask?: readonly Rule<V>[];
  /** May not run. */
  readonly deny?: readonly Rule<V>[];
  /** What holds for all other calls. Default: what the guards after this one and the tool itself say. */
  readonly otherwise?: "allow" | "ask" | "deny";
}

/**
 * Allows, asks about and denies calls by rules over the tool's name and its final input: `deny` is looked at first, then `ask`, then `allow`. It sees every
 * call, also one that a hook answered instead of the tool.
 *
 * A rule to allow answers what is asked beneath it, and never a denial: no `allow` of any guard, nor a person, overrides one. A rule to ask is not
 * silenced by what is allowed beneath. Name rules see the name that will run; a tool that takes paths or commands needs a `when`, and one that
 * throws denies. Throws a `TypeError` for a name that no tool can have, since such a rule would never hold, and for an `otherwise` that decides nothing.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { permissions } from "@jizai/jizai/middleware/permissions";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const remove = tool({
 *   name: "remove_file",
 *   description: "Removes a file",
 *   input: z.object({ path: z.string() }),
 *   execute: ({ path }) => `Removed ${path}`,
 * });
 * const rules = permissions({ ask: ["remove_*"], deny: [{ tool: "*", when: (input) => /passwd/.test(JSON.stringify(input)) }] });
 * const model = scripted({ calls: [["remove_file", { path: "/etc/passwd" }], ["remove_file", { path: "a.txt" }]] });
 *
 * const { status, questions } = await agent({ model, tools: [remove], use: [rules] }).run("Clean up").result;
 * assertEquals([status, questions.map(({ input }) => input)], ["paused", [{ path: "a.txt" }]]);
 * ```
 */
export function permissions<V = unknown>(
  { allow: allowed = [], ask: asked = [], deny: denied = [], otherwise }: PermissionsOptions<V>,
): Middleware<V> {
  if (![undefined, "allow", "ask", "deny"].includes(otherwise)) {
    throw new TypeError(`Cannot decide "${otherwise}" otherwise: expected "allow", "ask" or "deny"`);
  }
  const rules = [
    ...denied.map((rule) => compiled(rule, "deny")),
    ...asked.map((rule) => compiled(rule, "ask")),
    ...allowed.map((rule) => compiled(rule, "allow")),
    ...(otherwise ? [compiled("*", otherwise)] : []),
  ];
  return {
    name: "permissions",
    async approval(ctx, next) {
      const { decides, why } = await first(rules, ctx) ?? {};
      if (decides === "deny") return deny(why ?? `${ctx.name} is not permitted here.`);
      if (decides === "ask") return ask(why ?? `May ${ctx.name} run?`);
      const beneath = await next();
      return decides === "allow" && beneath.type === "ask" ? allow() : beneath;
    },
  };
}

interface Compiled<V> extends RuleOptions<V> {
  readonly decides: "allow" | "ask" | "deny";
  readonly name: RegExp;
}

function compiled<V>(rule: Rule<V>, decides: Compiled<V>["decides"]): Compiled<V> {
  const { tool = "*", ...more } = typeof rule === "string" ? { tool: rule } : rule;
  if (!/^[\w*-]+$/.test(tool)) {
    throw new TypeError(
      `Cannot make a rule for "${tool}": no tool has that name, in which only * stands for anything else`,
    );
  }
  return { ...more, decides, name: new RegExp(`^${tool.replaceAll("*", ".*")}$`, "s") };
}

/** The first rule that holds. */
async function first<V>(rules: readonly Compiled<V>[], ctx: ApprovalContext<V>): Promise<Compiled<V> | undefined> {
  for (const rule of rules) {
    if (rule.name.test(ctx.name) && (!rule.when || await rule.when(ctx.input, ctx))) return rule;
  }
  return undefined;
}
