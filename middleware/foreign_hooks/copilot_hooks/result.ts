/**
 * Results as hooks know them.
 *
 * @module
 */
import * as z from "zod";
import { type ContentPart, type ResultStatus, textOf, type ToolResult } from "../../../mod.ts";

/** An image or a file in a result. */
export interface ToolBinaryResult {
  /** Its bytes, in base64. */
  data: string;
  /** What it is, such as `image/png`. */
  mimeType: string;
  /** Whether it is an image. */
  type: "image" | "resource";
  /** What it shows. */
  description?: string;
}

/** How a call ended, as hooks know it. */
export type ToolResultType = "success" | "failure" | "rejected" | "denied" | "timeout";

/** A result as hooks know it. */
export interface ToolResultObject {
  /** What the model reads. */
  textResultForLlm: string;
  /** Images and files for it. */
  binaryResultsForLlm?: ToolBinaryResult[];
  /** How the call ended. */
  resultType: ToolResultType;
  /** What failed. */
  error?: string;
  /** For the person. */
  sessionLog?: string;
}

const statuses: Readonly<Record<ToolResultType, ResultStatus>> = {
  success: "ok",
  failure: "error",
  rejected: "denied",
  denied: "denied",
  timeout: "timeout",
};

/** A result that has succeeded, as hooks know it. */
export function told(result: ToolResult): ToolResultObject {
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

const form = z.object({
  textResultForLlm: z.string().optional().catch(undefined),
  binaryResultsForLlm: z.array(z.object({ data: z.string(), mimeType: z.string() })).optional().catch(undefined),
  resultType: z.enum(["success", "failure", "rejected", "denied", "timeout"]).optional().catch(undefined),
  sessionLog: z.string().optional().catch(undefined),
});

/** `result` as a hook modified it. What it does not say stays as it was; what is no result is one, as a text or as JSON. */
export function modified(result: ToolResult, given: unknown): ToolResult {
  const { data = {} } = form.safeParse(given);
  const { textResultForLlm: text, binaryResultsForLlm: binary, resultType: type, sessionLog: person } = data;
  if (text === undefined && binary === undefined && type === undefined) {
    return { ...result, parts: [textPart(typeof given === "string" ? given : JSON.stringify(given) ?? "")] };
  }
  const media = binary?.map(({ data, mimeType: mediaType }): ContentPart => ({ type: "media", mediaType, data })) ??
    result.parts.filter((part) => part.type === "media");
  return {
    ...result,
    status: type ? statuses[type] : result.status,
    parts: [textPart(text ?? textOf(result)), ...media],
    ...(person !== undefined && { person }),
  };
}

/** A result that the model is not told. */
export function withheld(result: ToolResult): ToolResult {
  return { ...result, parts: [textPart("The output was withheld by a hook.")] };
}

function textPart(text: string): ContentPart {
  return { type: "text", text };
}
