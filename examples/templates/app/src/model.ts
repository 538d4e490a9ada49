/**
 * The model of the agent.
 *
 * @module
 */
import type { Model } from "@jizai/jizai";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { openai } from "@jizai/jizai/model/openai";
import { demo } from "./demo_model.ts";

/** API keys, by the names of their environment variables. */
export interface Keys {
  readonly OPENAI_API_KEY?: string | undefined;
  readonly ANTHROPIC_API_KEY?: string | undefined;
}

/** Returns the model of the provider whose key is set, or the demo model. */
export function chooseModel(keys: Keys): Model {
  if (keys.OPENAI_API_KEY) return openai({ model: "gpt-6.1-terra", apiKey: keys.OPENAI_API_KEY });
  if (keys.ANTHROPIC_API_KEY) return anthropic({ model: "claude-sonnet-5-5", apiKey: keys.ANTHROPIC_API_KEY });
  return demo;
}
