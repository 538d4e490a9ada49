/**
 * Converts the results of MCP tools. Content of an unknown type becomes text for the model, and so does the reason why a file is left out.
 *
 * @module
 */
import type { Artifact, ContentPart, ToolResult } from "../../../mod.ts";
import { isObject, type JsonObject } from "./tool.ts";

/** Converts a result. A link becomes a text for the model and an artifact for the client. */
export function resultOf(
  { content, structuredContent, isError, _meta, resultType: _, ...rest }: JsonObject,
): ToolResult {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [content ?? []].flat();
  const parts = blocks.flatMap(partOf);
  const artifacts = blocks.flatMap(artifactOf);
  const isFailure = isError !== undefined && isError !== null && isError !== false && isError !== "false";
  if (parts.length === 0) {
    const other = structuredContent ?? (Object.keys(rest).length > 0 ? rest : undefined); // older servers have other members
    if (other !== undefined) parts.push(textOf(other));
    else if (isFailure) parts.push(textOf("The tool failed, and its MCP server gives no reason.")); // providers reject an error without content
  }
  return { type: "result", status: isFailure ? "error" : "ok", parts, ...(artifacts.length > 0 && { artifacts }) };
}

function partOf(block: unknown): readonly ContentPart[] {
  if (!isObject(block)) return block === null || block === undefined ? [] : [textOf(block)];
  const { type, text, data, mimeType, uri, name, title } = block;
  if (type === "resource" && isObject(block.resource)) return [resourcePart(block.resource)];
  if (typeof text === "string") return [textOf(text)];
  if (type === "resource_link" && typeof uri === "string") {
    return [textOf(`${[title, name].find((each) => typeof each === "string") ?? uri}: ${uri}`)];
  }
  if (typeof data === "string") return [mediaPart(data, mimeType, String(type))];
  return [textOf(type === "text" ? text ?? "" : block)];
}

/** Converts an embedded resource. */
function resourcePart(resource: JsonObject): ContentPart {
  const { text, blob, mimeType, uri } = resource;
  if (typeof text === "string") return textOf(text);
  if (typeof blob === "string") {
    return mediaPart(blob, mimeType ?? "application/octet-stream", `resource ${uri ?? ""}`.trim());
  }
  return textOf(resource);
}

/** Converts a file. Providers reject a request with one that is no base64 or has no type, so such a file becomes a text. */
function mediaPart(given: string, type: unknown, subject: string): ContentPart {
  const [, named, encoded = given] = given.match(/^data:([^;,]*)[^,]*;base64,(.*)$/s) ?? []; // some servers send a data URL
  const data = encoded.replaceAll(/\s/g, "");
  const mediaType = typeof type === "string" && type !== "" ? type : named;
  if (!mediaType) return textOf(`(The ${subject} cannot be shown: it has no media type.)`);
  try {
    atob(data);
  } catch {
    return textOf(`(The ${subject} cannot be shown: its data is not base64.)`);
  }
  return { type: "media", mediaType, data };
}

function textOf(value: unknown): ContentPart {
  return { type: "text", text: typeof value === "string" ? value : JSON.stringify(value) };
}

function artifactOf(block: unknown): readonly Artifact[] {
  const { type, uri, name, mimeType }: JsonObject = Object(block);
  if (type !== "resource_link" || typeof uri !== "string") return [];
  const named = typeof name === "string" ? name : uri;
  return [{ uri, name: named, ...(typeof mimeType === "string" && { mediaType: mimeType }) }];
}
