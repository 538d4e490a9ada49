/**
 * Converts the options of a request for the wire and from it.
 *
 * @module
 */
import * as z from "zod";
import type { Json, ModelOptions } from "../../../../mod.ts";

/** Converts options for the wire. */
export function toWireOptions({ temperature, maxTokens, provider = {} }: ModelOptions): Record<string, unknown> {
  return {
    ...provider,
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
  };
}

/** The schema of options. */
export const wireOptions: z.core.$ZodType<Record<string, unknown>> = z
  .object({ temperature: z.number().nullish(), max_tokens: z.number().nullish() })
  .catchall(z.json());

/** Converts options from the wire. The output schema, which the wire does not carry, stays. */
export function fromWireOptions(wire: Readonly<Record<string, unknown>>, { output }: ModelOptions): ModelOptions {
  const { temperature, max_tokens: maxTokens, ...rest } = wire;
  const provider = rest as Record<string, Json>; // the schema accepts JSON only
  return {
    ...(typeof temperature === "number" && { temperature }),
    ...(typeof maxTokens === "number" && { maxTokens }),
    ...(output && { output }),
    ...(Object.keys(provider).length > 0 && { provider }),
  };
}
