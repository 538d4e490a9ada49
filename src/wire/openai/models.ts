/**
 * The list of models, in OpenAI's format: the agent is the only one.
 *
 * @module
 */
import type { WireRoute } from "../wire.ts";

/** Options of `chatCompletions()` and `responses()`. */
export interface OpenaiOptions {
  /** The path of the API. Default: `/v1`. */
  readonly path?: string;
}

/** Headers of a JSON response. OpenAI's clients retry a failed request unless told otherwise, but the agent may already have run tools. */
export const jsonHeaders = { "x-should-retry": "false" };

/** Returns the routes that list the models. */
export function modelRoutes(agent: string, path: string): readonly WireRoute[] {
  const model = { id: agent, object: "model", created: 0, owned_by: "jizai" };
  const list = { object: "list", data: [model] };
  return [
    { method: "GET", path: `${path}/models`, parse: () => ({ type: "json", body: list }) },
    { method: "GET", path: `${path}/models/:jizai_model`, parse: () => ({ type: "json", body: model }) },
  ];
}
