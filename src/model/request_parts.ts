/**
 * Parts of a request that are the same for every provider.
 *
 * @module
 */
import type { Message } from "../protocol/message.ts";
import type { Call, MediaPart } from "../protocol/part.ts";
import { isObject, type UnknownObject } from "../protocol/shape.ts";
import type { ToolDefinition } from "./model.ts";

/** Returns the input of a call as an object. Providers reject other values, which a model may have written. */
export function callInput({ input }: Call): UnknownObject {
  return isObject(input) ? input : { input };
}

/** Returns the input schema of a tool without `$schema`, which some providers reject. */
export function toolSchema({ schema: { $schema: _, ...schema } }: Pick<ToolDefinition, "schema">): UnknownObject {
  return schema;
}

/** Returns the text of the person that comes first if a conversation that is sent begins with the assistant, which some providers reject. */
export function openingNotice(messages: readonly Message[]): string | undefined {
  return messages.some(({ role }) => role === "user") ? "[The conversation begins with your message.]" : undefined;
}

/** Returns the text that replaces a file that a model generated, where the provider accepts no files from it. */
export function generatedFileNotice({ mediaType, url }: MediaPart): string {
  return `[You generated a file of type ${mediaType}${url === undefined ? "" : `: ${url}`}]`;
}

/** Returns the text that replaces a file of a type that the provider does not accept. */
export function fileNotice({ mediaType }: MediaPart): string {
  return `[A file of type ${mediaType}, which you cannot be shown.]`;
}
