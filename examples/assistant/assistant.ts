/**
 * The assistant of a small shop, with a stack of middleware.
 *
 * @module
 */
import { type Agent, agent, type Middleware, type Model, type Scope, vars, when } from "@jizai/jizai";
import type { WrapHooks } from "@jizai/jizai/engine";
import { budget } from "@jizai/jizai/middleware/budget";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { credentials, redact } from "@jizai/jizai/middleware/redact";
import { retry } from "@jizai/jizai/middleware/retry";
import { asTool } from "@jizai/jizai/subagents";
import { readGuides, searchTool } from "./guides.ts";
import { shopTools } from "./tools.ts";

const guides = searchTool(await readGuides(new URL("../../", import.meta.url)));

/** The vars of a run: the names of the middleware that are turned off. */
export interface Settings {
  readonly off: readonly string[];
}

/** Additions to the assistant. */
export interface Additions {
  /** Milliseconds that a step of the shop takes. Default: 700. */
  readonly pace?: number;
  readonly use?: readonly Middleware<Settings>[];
  readonly trace?: WrapHooks;
}

/** Sixteen digits, in groups of four. */
const cardNumber = /\b\d{4} \d{4} \d{4} \d{4}\b/;

/** Returns a middleware that a run can turn off. */
function switchable(middleware: Middleware): Middleware<Settings> {
  return when(({ vars }: Scope<Settings>) => !vars.off.includes(middleware.name ?? ""), middleware);
}

/** Creates the assistant. */
export function assistant(
  model: Model,
  { use = [], pace = 700, ...additions }: Additions = {},
): Agent<Settings, unknown> {
  const tools = shopTools(pace);
  const adviser = agent({
    name: "gift_adviser",
    description: "Finds a gift in the stock of the shop for a person with a taste",
    model,
    instructions: "You are the gift adviser of a shop. Look up what may fit, and propose one gift in a sentence.",
    tools: tools.filter(({ name }) => name === "look_up"),
  });
  return agent({
    name: "shop assistant",
    vars: vars<Settings>(),
    model,
    instructions:
      "You are the assistant of a small shop. Use the tools, several at once where that is possible, and answer briefly. " +
      "A refund without an amount is 80 euros. Use search_guides for questions about Jizai, the framework that you run on.",
    tools: [...tools, asTool(adviser), guides],
    use: [
      ...use,
      switchable(redact({ patterns: [...credentials, cardNumber] })),
      switchable(retry({ delay: pace / 2 })),
      switchable(budget({ calls: 14 })),
      switchable(permissions({
        ask: [{ tool: "refund", why: "Pay this money back?" }],
        deny: [{ tool: "delete_customer", why: "Customers are never deleted here." }],
      })),
    ],
    ...additions,
  });
}
