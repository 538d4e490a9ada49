/**
 * The permission rules and the mode that hooks set for a session with `updatedPermissions`.
 *
 * @module
 */
import * as z from "zod";
import type { Scope, State } from "../../../../mod.ts";
import { warnFailed } from "../../kit/warn.ts";
import { matchesCall, type Rule, type RuledCall } from "./rule.ts";

/** A mode, and rules. */
export interface Permissions {
  /**
   * Decides about calls that no hook and no rule decides: `bypassPermissions` and `yolo` allow them, `dontAsk` denies them, and in every other mode a person
   * is asked.
   */
  readonly mode: string;
  readonly rules: readonly BehaviorRule[];
}

/** The permissions of a new session. */
export const noPermissions: Permissions = { mode: "default", rules: [] };

type Behavior = "allow" | "ask" | "deny";

/** A rule, and its decision. */
export interface BehaviorRule extends Rule {
  readonly behavior: Behavior;
}

const rules = z.array(z.object({ toolName: z.string(), ruleContent: z.string().optional() }));
const behavior = z.enum(["allow", "ask", "deny"]);
/** A change, for every destination. Every change holds for this session. */
const changes = z.discriminatedUnion("type", [
  z.object({ type: z.enum(["addRules", "replaceRules", "removeRules"]), rules, behavior }),
  z.object({ type: z.literal("setMode"), mode: z.string() }),
  z.object({ type: z.enum(["addDirectories", "removeDirectories"]) }),
]);

/** Applies changes. An invalid change is skipped with a warning. */
export function applyUpdates(
  kept: State<Permissions>,
  ctx: Scope,
  updates: readonly unknown[],
  middleware: string,
): void {
  for (const given of updates) {
    const { data } = changes.safeParse(given);
    if (data) kept.update(ctx, (permissions) => applied(permissions, data));
    else {
      const message = "A hook of PermissionRequest returned an invalid output: unknown change in updatedPermissions.";
      warnFailed(ctx, { middleware, point: "approval", message });
    }
  }
}

function applied(permissions: Permissions, update: z.output<typeof changes>): Permissions {
  if (update.type === "setMode") return { ...permissions, mode: update.mode };
  if (!("rules" in update)) return permissions; // a workspace has one root
  const { rules } = permissions;
  const { type, behavior } = update;
  const given = update.rules.map((rule) => ({ ...rule, behavior }));
  if (type === "addRules") return { ...permissions, rules: [...rules, ...given] };
  if (type === "replaceRules") {
    return { ...permissions, rules: [...rules.filter((rule) => rule.behavior !== behavior), ...given] };
  }
  const removed = given.map(keyOf);
  return { ...permissions, rules: rules.filter((rule) => !removed.includes(keyOf(rule))) };
}

function keyOf({ toolName, ruleContent = "", behavior }: BehaviorRule): string {
  return JSON.stringify([toolName, ruleContent, behavior]);
}

/** Returns the strictest rule that matches a call; undefined if none matches. */
export function rulingOf({ rules }: Permissions, call: RuledCall): BehaviorRule | undefined {
  const order = ["deny", "ask", "allow"] as const;
  const matching = rules.filter((rule) => matchesCall(rule, call, rule.behavior === "allow" ? "allow" : "guard"));
  return order.flatMap((behavior) => matching.filter((rule) => rule.behavior === behavior))[0];
}
