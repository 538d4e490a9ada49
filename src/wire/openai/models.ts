/**
 * The models that OpenAI's clients may name: there is one, which is the agent.
 *
 * @module
 */
import type { WireRoute } from "../wire.ts";

/** What `chatCompletions()` and `responses()` take. */
export interface OpenaiOptions {
  /** Where the API is served. Default: `/v1`. */
  readonly path?: string;
}

/** What goes with a response that comes as a whole. Clients try again what has failed; an agent may have done things by then. */
export const wholeHeaders = { "x-should-retry": "false" };

/** The routes that tell of models. */
export function models(agent: string, path: string): readonly WireRoute[] {
  const model = { id: agent, object: "model", created: 0, owned_by: "jizai" };
  return [
    { method: "GET", path: `${path}/models`, read: () => ({ type: "know", body: { object: "list", data: [model] } }) },
    { method: "GET", path: `${path}/models/:id`, read: () => ({ type: "know", body: model }) },
  ];
}
