/**
 * Hooks that only call `next()`.
 *
 * @module
 */
import type { Middleware } from "@jizai/jizai";

/** A hook at every point that returns the result of `next()`. */
export const passThroughHooks = {
  session: async (_, next) => await next(),
  prompt: async (_, next) => await next(),
  turn: async (_, next) => await next(),
  model: async (_, next) => await next(),
  tool: async (_, next) => await next(),
  approval: async (_, next) => await next(),
  execute: async (_, next) => await next(),
  stop: async (_, next) => await next(),
  compact: async (_, next) => await next(),
  subagent: async (_, next) => await next(),
  error: async (_, next) => await next(),
  abort: async (_, next) => await next(),
} satisfies Middleware;
