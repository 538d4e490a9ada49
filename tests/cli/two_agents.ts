/**
 * Agents for the test of `jizai explain`.
 *
 * @module
 */
import { agent, type Middleware } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";

const shout: Middleware = { name: "shout", tool: (_ctx, next) => next() };

/** An agent with a hook. */
export const first = agent({ name: "first", model: scripted("1"), use: [shout] });

/** An agent without a hook. */
export const second = agent({ name: "second", model: scripted("2") });
