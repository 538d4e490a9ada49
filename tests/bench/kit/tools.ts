/**
 * The tool that is measured: it costs nothing.
 *
 * @module
 */
import { tool } from "@jizai/jizai";
import * as z from "zod";
import type { Options } from "./load.ts";

/** Returns options with one tool, and with limits that no load reaches. */
export function withTool(execute: () => unknown = () => "ok"): Options {
  const work = tool({ name: "work", description: "Works", input: z.object({ index: z.number() }), execute });
  return { tools: [work], limits: { turns: 1_000, calls: 100_000 } };
}
