/**
 * Messages, calls and tools on the wire: those of the chat completions of OpenAI.
 *
 * @module
 */
import * as z from "zod";
import type { Call, CallPart, ToolDefinition } from "../../../../mod.ts";
import { fields, struct, text } from "./struct.ts";

/** A call on the wire. */
export interface WireCall {
  /** Its id. */
  readonly id: string;
  /** Always "function". */
  readonly type: string;
  /** The tool, and its input as a string of JSON. */
  readonly function: { readonly name: string; readonly arguments: string };
}

/** A message on the wire. */
export interface WireMessage {
  /** The author: `system`, `user`, `assistant` or `tool`. */
  readonly role: string;
  /** The text. */
  readonly content: string;
  /** Images and files. */
  readonly media?: readonly string[] | undefined;
  /** The reasoning of the model. */
  readonly reasoning_content?: string | undefined;
  /** The calls of the message. */
  readonly tool_calls?: readonly WireCall[] | undefined;
  /** The call that the message answers. */
  readonly tool_call_id?: string | undefined;
}

/** A tool on the wire. */
export interface WireTool {
  /** Always "function". */
  readonly type: string;
  /** The tool. */
  readonly function: {
    readonly name: string;
    readonly description: string;
    readonly parameters: Readonly<Record<string, unknown>>;
  };
}

/** The schema of a call. */
export const wireCall: z.core.$ZodType<WireCall> = struct({
  id: text,
  type: text,
  function: struct({ name: text, arguments: text }),
});

/** The schema of a message. */
export const wireMessage: z.core.$ZodType<WireMessage> = struct({
  role: text,
  content: text,
  media: z.array(z.string()).optional(),
  reasoning_content: z.string().optional(),
  tool_calls: z.array(wireCall).optional(),
  tool_call_id: z.string().optional(),
});

/** The schema of a tool. */
export const wireTool: z.core.$ZodType<WireTool> = struct({
  type: text,
  function: struct({ name: text, description: text, parameters: fields }),
});

/** Converts a call for the wire. */
export function toWireCall({ id, name, input, malformed }: Call): WireCall {
  const written = malformed === undefined ? JSON.stringify(input ?? {}) : String(input);
  return { id, type: "function", function: { name, arguments: written } };
}

/** Converts a call from the wire. A call without an id gets one. */
export function fromWireCall({ id, function: { name, arguments: written } }: WireCall): CallPart {
  const made = { type: "call", id: id || crypto.randomUUID(), name } as const;
  try {
    return { ...made, input: written.trim() === "" ? {} : JSON.parse(written) };
  } catch (error) {
    return { ...made, input: written, malformed: error instanceof Error ? error.message : "not JSON" };
  }
}

/** Converts a tool for the wire. */
export function toWireTool({ name, description, schema }: ToolDefinition): WireTool {
  return { type: "function", function: { name, description, parameters: schema } };
}

/** Converts a tool from the wire. */
export function fromWireTool({ function: { name, description, parameters } }: WireTool): ToolDefinition {
  return { name, description, schema: parameters };
}
