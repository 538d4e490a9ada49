/**
 * Allows, asks about and denies calls by rules.
 *
 * @module
 */
import { allow, type ApprovalContext, ask, deny, type Middleware } from "../../mod.ts";
import { canonicalJson, expectNames, hashOf, wildcard } from "../../src/core/kit.ts";

/** Selects calls: the name of a tool, in which `*` is a wildcard, or an object. */
export type Rule<V = unknown> = string | RuleOptions<V>;

/** Selects calls by the tool's name and by a condition. */
export interface RuleOptions<V = unknown> {
  /** The name of the tool, in which `*` is a wildcard. Default: every tool. */
  readonly tool?: string;
  /** Whether the rule applies to this input: the JSON that the tool would run with, after its schema. If it throws, the call is denied. */
  readonly when?: (input: unknown, ctx: ApprovalContext<V>) => boolean | Promise<boolean>;
  /** The reason that a `deny` rule gives to the model, or the question that an `ask` rule asks. */
  readonly why?: string;
}

/** Options of `permissions()`: rules by their decision. */
export interface PermissionsOptions<V = unknown> {
  /** Calls that run, even if the tool itself or a later guard asks. */
  readonly allow?: readonly Rule<V>[];
  /** Calls that a person decides. */
  readonly ask?: readonly Rule<V>[];
  /** Calls that do not run. */
  readonly deny?: readonly Rule<V>[];
  /** The decision for all other calls. Default: the decision of the later guards and of the tool itself. */
  readonly otherwise?: "allow" | "ask" | "deny";
}

/**
 * Allows, asks about and denies calls by rules over the tool's name and its final input. `deny` rules are checked first, then `ask`, then `allow`. The rules
 * apply to every call, also to a call that a hook answers instead of the tool.
 *
 * An `allow` rule answers the questions of later guards and of the tool. It never overrides a denial: neither another guard nor a person can. An `ask` rule
 * asks even if later guards allow; "always allow" of a person answers this rule only. Rules match the name that will run. For a tool that takes paths or commands, write a `when`.
 *
 * Throws a `TypeError` for an unknown option, for a malformed rule, for a name that no tool can have, because its rule would never apply, and for an unknown
 * `otherwise`.
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
export function permissions<V = unknown>(options: PermissionsOptions<V>): Middleware<V> {
  expectNames(subject, options, [...decisions, "otherwise"]);
  const { otherwise } = options;
  if (![undefined, ...decisions].includes(otherwise)) {
    throw new TypeError(`${subject}: \`otherwise\` is "${otherwise}"; expected "allow", "ask" or "deny"`);
  }
  const rules = decisions.flatMap((decision) => compileAll(decision, options[decision]));
  if (otherwise) rules.push(compile("*", otherwise));
  return {
    name: "permissions",
    async approval(ctx, next) {
      const rule = await firstMatch(rules, ctx);
      if (rule?.decision === "deny") return deny(rule.why ?? `${ctx.name} is not permitted here.`);
      if (rule?.decision === "ask") return ask(rule.why ?? `May ${ctx.name} run?`, { key: await keyOf(rule, rules) });
      const verdict = await next();
      return rule?.decision === "allow" && verdict.type === "ask" ? allow() : verdict;
    },
  };
}

const subject = "Cannot create permissions()";

/** The decisions, in the order in which their rules are checked. */
const decisions = ["deny", "ask", "allow"] as const;

interface CompiledRule<V> extends RuleOptions<V> {
  readonly decision: (typeof decisions)[number];
  readonly matches: (name: string) => boolean;
}

function compileAll<V>(decision: CompiledRule<V>["decision"], rules: readonly Rule<V>[] = []): CompiledRule<V>[] {
  if (Array.isArray(rules)) return rules.map((rule: Rule<V>) => compile(rule, decision));
  throw new TypeError(`${subject}: \`${decision}\` is ${JSON.stringify(rules)}; expected a list of rules`);
}

function compile<V>(nameOrRule: Rule<V>, decision: CompiledRule<V>["decision"]): CompiledRule<V> {
  const rule = typeof nameOrRule === "string" ? { tool: nameOrRule } : nameOrRule;
  expectNames(`${subject}: a rule of \`${decision}\``, rule, ["tool", "when", "why"]);
  const { tool = "tool" in rule ? undefined : "*", when, why } = rule;
  if (typeof tool !== "string" || !/^[\w*-]+$/.test(tool)) {
    throw new TypeError(`${subject}: no tool can have the name "${tool}"; expected A-Z a-z 0-9 _ - and *`);
  }
  if ("when" in rule && typeof when !== "function") { // undefined may be a misspelt condition, without which the rule applies to all calls
    throw new TypeError(
      `${subject}: \`when\` of a rule of \`${decision}\` is ${JSON.stringify(when)}; expected a function`,
    );
  }
  if (why !== undefined && typeof why !== "string") {
    throw new TypeError(`${subject}: \`why\` of a rule of \`${decision}\` is ${JSON.stringify(why)}; expected a text`);
  }
  return { ...rule, decision, matches: wildcard(tool) };
}

/** Returns the identity of a rule. It has other ones than all other rules of the list, and than a rule with another condition. */
async function keyOf<V>(rule: CompiledRule<V>, rules: readonly CompiledRule<V>[]): Promise<string> {
  const { tool = "*", why = "", when } = rule;
  return await hashOf(canonicalJson([rules.indexOf(rule), tool, why, when ? String(when) : ""]));
}

async function firstMatch<V>(
  rules: readonly CompiledRule<V>[],
  ctx: ApprovalContext<V>,
): Promise<CompiledRule<V> | undefined> {
  for (const rule of rules) {
    if (rule.matches(ctx.name) && (!rule.when || await rule.when(ctx.parsed, ctx))) return rule;
  }
  return undefined;
}
