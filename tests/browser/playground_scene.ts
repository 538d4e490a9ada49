/**
 * Pages of the playground for the tests, and what they show.
 *
 * @module
 */
import { agent, type Middleware, serve, type ServeOptions, tool } from "@jizai/jizai";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { playground, type PlaygroundOptions } from "@jizai/jizai/playground";
import { trace } from "@jizai/jizai/trace";
import * as z from "zod";
import { order } from "../support/asking.ts";
import { type Page, type Visit, visit } from "./chromium.ts";

/** A tool that takes a moment. */
export const weather = tool({
  name: "weather",
  description: "Forecasts the weather",
  input: z.object({ city: z.string() }),
  execute: async ({ city }) => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return `Sunny in ${city}`;
  },
});

/** The parts of a page and its agent that a test chooses. */
export interface Scene extends PlaygroundOptions, Pick<ServeOptions, "owner"> {
  /** Receives errors. With `terminal`, the server writes them to its terminal. Default: they are ignored. */
  readonly onError?: ServeOptions["onError"] | "terminal";
  readonly name?: string;
  readonly steps?: readonly ScriptedAnswer[];
  readonly tools?: readonly (typeof weather | typeof order)[];
  readonly use?: readonly Middleware[];
}

/** Opens a page for an agent that follows a script. */
export function open(
  { name = "planner", steps = [], tools = [weather, order], use = [], onError, owner, ...options }: Scene,
): Promise<Visit> {
  const assistant = agent({ name, model: scripted(...steps), tools, use, trace });
  const page = playground(options);
  const report = onError === "terminal" ? {} : { onError: onError ?? (() => {}) };
  return visit(
    serve(assistant, {
      page,
      onClientGone: "detach",
      ...report,
      ...(owner && { owner }),
    }),
  );
}

/** Waits until the page shows a status. */
export async function until(page: Page, state: string): Promise<void> {
  await page.locator(`#state:text-is("${state}")`).waitFor();
}

/** Returns the brackets of the trace, one line each, indented by their depth. */
export async function brackets(page: Page): Promise<readonly string[]> {
  return await page.evaluate(`[...document.querySelectorAll("#onion .span")].map((span) => {
    let depth = 0;
    for (let outer = span.parentElement.closest(".span"); outer; outer = outer.parentElement.closest(".span")) depth++;
    const [name, did] = span.children[0].children;
    return " ".repeat(depth) + [name, did].map((cell) => cell?.textContent).filter((text) => text).join(": ");
  })`) as readonly string[]; // the lines, as the script returns them
}
