/**
 * An agent that answers in capitals, for the test of `jizai replay`.
 *
 * @module
 */
import { agent, type Middleware } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";

const loud: Middleware = {
  name: "loud",
  async prompt(_ctx, next) {
    const answer = await next();
    return { ...answer, text: answer.text.toUpperCase() };
  },
};

/** The agent. */
export const first = agent({ name: "first", model: scripted(), use: [loud] });
