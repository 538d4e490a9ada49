/**
 * Results of tools, as hooks receive and return them.
 *
 * @module
 */
import * as z from "zod";
import { type ContentPart, type ResultStatus, textOf, type ToolResult } from "../../../mod.ts";
import { textPart } from "../kit/call.ts";

/** An image or a file in a result. */
export interface ToolBinaryResult {
  /** Its bytes in base64. */
  data: string;
  /** Its media type, such as `image/png`. */
  mimeType: string;
  /** Whether it is an image. */
  type: "image" | "resource";
  /** A description. */
  description?: string;
}

/** The outcome of a call. */
export type ToolResultType = "success" | "failure" | "rejected" | "denied" | "timeout";

/** A result. */
export interface ToolResultObject {
  /** The text for the model. */
  textResultForLlm: string;
  /** Content for the model, in place of the text: texts, and objects with `text`, or with `data` and `mimeType`. */
  resultForAssistant?: unknown[];
  /** Images and files for the model. */
  binaryResultsForLlm?: ToolBinaryResult[];
  /** The outcome of the call. */
  resultType: ToolResultType;
  /** The message of the error. */
  error?: string;
  /** A text for the person. */
  sessionLog?: string;
}

const statuses: Readonly<Record<ToolResultType, ResultStatus>> = {
  success: "ok",
  failure: "error",
  rejected: "denied",
  denied: "denied",
  timeout: "timeout",
};

/** Returns a successful result as hooks receive it. */
export function toHookResult(result: ToolResult): ToolResultObject {
  const binary = result.parts.flatMap((part): ToolBinaryResult[] => {
    if (part.type !== "media" || part.data === undefined) return [];
    const { data, mediaType: mimeType } = part;
    return [{ data, mimeType, type: mimeType.startsWith("image/") ? "image" : "resource" }];
  });
  return {
    textResultForLlm: textOf(result),
    resultType: "success",
    ...(binary.length > 0 && { binaryResultsForLlm: binary }),
  };
}

const media = z.object({ data: z.string(), mimeType: z.string() })
  .transform(({ data, mimeType: mediaType }): ContentPart => ({ type: "media", mediaType, data }));
const content = z.array(z.union([
  z.string().transform(textPart),
  z.object({ text: z.string() }).transform(({ text }) => textPart(text)),
  media,
  z.unknown().transform((value) => textPart(JSON.stringify(value) ?? "")),
]));
const form = z.object({
  textResultForLlm: z.string().optional().catch(undefined),
  resultForAssistant: content.optional().catch(undefined),
  binaryResultsForLlm: z.array(media).optional().catch(undefined),
  resultType: z.enum(["success", "failure", "rejected", "denied", "timeout"]).optional().catch(undefined),
  sessionLog: z.string().optional().catch(undefined),
});

/** Applies `modifiedResult` to a result. Absent fields keep their values. Another value becomes a result: its text, or its JSON. */
export function modified(result: ToolResult, given: unknown): ToolResult {
  const { data = {} } = form.safeParse(given);
  const { textResultForLlm: text, resultForAssistant, binaryResultsForLlm, resultType, sessionLog: person } = data;
  if ([text, resultForAssistant, binaryResultsForLlm, resultType].every((field) => field === undefined)) {
    return { ...result, parts: [textPart(typeof given === "string" ? given : JSON.stringify(given) ?? "")] };
  }
  const binary = binaryResultsForLlm ?? result.parts.filter((part) => part.type === "media");
  return {
    ...result,
    status: resultType ? statuses[resultType] : result.status,
    parts: resultForAssistant?.length ? resultForAssistant : [textPart(text ?? textOf(result)), ...binary],
    ...(person !== undefined && { person }),
  };
}

/** Returns a result without its content. */
export function withheld(result: ToolResult): ToolResult {
  return { ...result, parts: [textPart("The output was withheld by a hook.")] };
}
