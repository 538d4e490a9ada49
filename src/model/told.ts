/**
 * What every provider is told in the same way.
 *
 * @module
 */
import type { Call, MediaPart } from "../protocol/message.ts";
import { type Fields, isFields } from "./fields.ts";
import type { ToolDefinition } from "./model.ts";

/** The input of a call as an object, which providers insist on also where the model wrote something else. */
export function inputOf({ input }: Call): Fields {
  return isFields(input) ? input : { input };
}

/** The schema of a tool's input, without the name of its dialect: not every provider knows that it may be there. */
export function schemaOf({ schema: { $schema: _, ...schema } }: Pick<ToolDefinition, "schema">): Fields {
  return schema;
}

/** What the model reads in place of a file that it cannot be shown. */
export function unseen({ mediaType }: MediaPart): string {
  return `[A file of type ${mediaType}, which you cannot be shown.]`;
}
