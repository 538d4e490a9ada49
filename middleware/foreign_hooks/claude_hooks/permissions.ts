/**
 * What hooks have changed of what a person is asked: rules and a mode, for the session.
 *
 * @module
 */
import * as z from "zod";
import type { Scope, State } from "../../../mod.ts";
import { means, type Rule } from "./rule.ts";

/** What is asked, and what is not. */
export interface Permissions {
  /** What is done where nothing else decides: `bypassPermissions` and `yolo` ask nothing, `dontAsk` denies instead, others ask. */
  readonly mode: string;
  /** Which calls are allowed, asked about, and denied. */
  readonly rules: readonly BehaviorRule[];
}

/** Everything is asked. */
export const asked: Permissions = { mode: "default", rules: [] };

/** A rule, and what is done about the calls that it means. */
export interface BehaviorRule extends Rule {
  /** What is done. */
  readonly behavior: Behavior;
}

/** What is done about a call. */
export type Behavior = "allow" | "ask" | "deny";

const rules = z.array(z.object({ toolName: z.string(), ruleContent: z.string().optional() }));
const behavior = z.enum(["allow", "ask", "deny"]);
/** A change, as hooks write it. Whichever settings it is for, it is one of this session. */
const changes = z.discriminatedUnion("type", [
  z.object({ type: z.literal("addRules"), rules, behavior }),
  z.object({ type: z.literal("replaceRules"), rules, behavior }),
  z.object({ type: z.literal("removeRules"), rules, behavior }),
  z.object({ type: z.literal("setMode"), mode: z.string() }),
  z.object({ type: z.enum(["addDirectories", "removeDirectories"]) }),
]);

/** Makes changes. One that is none is left out, and whoever watches is warned. */
export function change(
  kept: State<Permissions>,
  ctx: Scope,
  updates: readonly unknown[],
  middleware: string,
): void {
  for (const given of updates) {
    const parsed = changes.safeParse(given);
    if (parsed.success) kept.update(ctx, (permissions) => changed(permissions, parsed.data));
    else {
      const message = "A hook of PermissionRequest gave what is left out: updatedPermissions has no such change.";
      ctx.emit({ type: "warning", code: "hook.failed", message, middleware, point: "approval" });
    }
  }
}

function changed(permissions: Permissions, update: z.output<typeof changes>): Permissions {
  const { rules } = permissions;
  switch (update.type) {
    case "setMode":
      return { ...permissions, mode: update.mode };
    case "addRules":
      return { ...permissions, rules: [...rules, ...ruled(update)] };
    case "replaceRules":
      return {
        ...permissions,
        rules: [...rules.filter(({ behavior }) => behavior !== update.behavior), ...ruled(update)],
      };
    case "removeRules": {
      const gone = ruled(update).map(keyOf);
      return { ...permissions, rules: rules.filter((rule) => !gone.includes(keyOf(rule))) };
    }
    default:
      return permissions; // a workspace has one root
  }
}

function ruled({ rules, behavior }: { readonly rules: readonly Rule[]; readonly behavior: Behavior }): BehaviorRule[] {
  return rules.map((rule) => ({ ...rule, behavior }));
}

function keyOf({ toolName, ruleContent = "", behavior }: BehaviorRule): string {
  return JSON.stringify([toolName, ruleContent, behavior]);
}

/** What the rules say of a call, the strictest first; nothing where none means it. */
export function ruling({ rules }: Permissions, name: string, input: unknown): Behavior | undefined {
  const order = ["deny", "ask", "allow"] as const;
  return order.find((behavior) =>
    rules.some((rule) => rule.behavior === behavior && means(rule, name, input, { every: behavior === "allow" }))
  );
}
