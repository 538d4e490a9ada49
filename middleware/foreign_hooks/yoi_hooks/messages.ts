/**
 * Messages in the form of yoi, and their schemas.
 *
 * @module
 */
import * as z from "zod";
import type { Json } from "../../../mod.ts";

/** The author of a message. */
export type Role = "user" | "assistant" | "system";

/** A message. Results of tools are parts of a message of the user. */
export interface Message {
  /** The author. A message of the system, added by a hook, is added to the instructions. */
  role: Role;
  /** A text, or parts if there is more than text. */
  content: string | ContentPart[];
  /** The middleware that wrote a message of the user. */
  from?: string | undefined;
}

/** Creates messages. */
export const Message: {
  readonly user: (text: string) => Message;
  readonly assistant: (text: string) => Message;
  readonly system: (text: string) => Message;
} = {
  user: (text) => ({ role: "user", content: text }),
  assistant: (text) => ({ role: "assistant", content: text }),
  system: (text) => ({ role: "system", content: text }),
};

/** A part of a message. */
export type ContentPart =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string; meta?: Json | undefined }
  | { type: "media"; mediaType: string; data?: string | undefined; url?: string | undefined; meta?: Json | undefined }
  | { type: "source"; url?: string | undefined; title?: string | undefined; text?: string | undefined }
  | {
    type: "provider_call";
    callId: string;
    name: string;
    server?: string | undefined;
    input: Json;
    meta?: Json | undefined;
  }
  | {
    type: "provider_result";
    callId: string;
    name: string;
    status: "ok" | "error";
    output: Json;
    meta?: Json | undefined;
  }
  | { type: "refusal"; text: string; category?: string | undefined }
  | { type: "logprobs"; tokens: unknown[] }
  | { type: "tool_use"; id: string; name: string; input: unknown }
  | { type: "tool_result"; tool_use_id: string; content: string; is_error: boolean };

const partSchema: z.core.$ZodType<ContentPart> = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("reasoning"), text: z.string(), meta: z.json().optional() }),
  z.object({
    type: z.literal("media"),
    mediaType: z.string(),
    data: z.string().optional(),
    url: z.string().optional(),
    meta: z.json().optional(),
  }),
  z.object({
    type: z.literal("source"),
    url: z.string().optional(),
    title: z.string().optional(),
    text: z.string().optional(),
  }),
  z.object({
    type: z.literal("provider_call"),
    callId: z.string(),
    name: z.string(),
    server: z.string().optional(),
    input: z.json(),
    meta: z.json().optional(),
  }),
  z.object({
    type: z.literal("provider_result"),
    callId: z.string(),
    name: z.string(),
    status: z.enum(["ok", "error"]),
    output: z.json(),
    meta: z.json().optional(),
  }),
  z.object({ type: z.literal("refusal"), text: z.string(), category: z.string().optional() }),
  z.object({ type: z.literal("logprobs"), tokens: z.array(z.unknown()) }),
  z.object({ type: z.literal("tool_use"), id: z.string(), name: z.string(), input: z.unknown() }),
  z.object({
    type: z.literal("tool_result"),
    tool_use_id: z.string(),
    content: z.string(),
    is_error: z.boolean().default(false),
  }),
]);

/** The schema of a message. */
export const messageSchema: z.core.$ZodType<Message> = z.object({
  role: z.enum(["user", "assistant", "system"]),
  content: z.union([z.string(), z.array(partSchema)]),
  from: z.string().optional(),
});

/** A message, or a text of the user. */
const messageOrText: z.core.$ZodType<Message> = z.preprocess(
  (given) => typeof given === "string" ? Message.user(given) : given,
  messageSchema,
);

/** The schema of a context: messages or texts. */
export const contextSchema: z.core.$ZodType<Message[]> = z.array(messageOrText);
