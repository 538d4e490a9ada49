/**
 * Converts the content of MCP servers: results of tools, and resources.
 *
 * @module
 */
import type { Artifact, ContentPart, ToolResult } from "../../../mod.ts";
import { canonicalJson, isObject, type UnknownObject } from "../../../src/core/kit.ts";

// Converts the results of MCP tools. Content of an unknown type becomes text for the model, and so does the reason why a file is left out.

/** Converts a result. A link becomes a text for the model and an artifact for the client. */
export function resultOf(
  { content, structuredContent, isError, _meta, resultType: _, ...rest }: UnknownObject,
): ToolResult {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [content ?? []].flat();
  const parts = blocks.flatMap(partOf);
  const artifacts = blocks.flatMap(artifactOf);
  const isFailure = isError !== undefined && isError !== null && isError !== false && isError !== "false";
  const hasOther = parts.length === 0 && Object.keys(rest).length > 0; // older servers have other members
  const structured = structuredContent ?? (hasOther ? rest : undefined);
  if (structured !== undefined && !hasText(parts, structured)) parts.push(textOf(structured));
  if (parts.length === 0 && isFailure) parts.push(textOf("The tool failed, and its MCP server gives no reason.")); // providers reject an error without content
  return { type: "result", status: isFailure ? "error" : "ok", parts, ...(artifacts.length > 0 && { artifacts }) };
}

/**
 * Whether the texts of a result are the text form of its structured content, as servers should send it. Some servers put a value that is no object into a member
 * `result`, and send a list as one text for each element.
 */
function hasText(parts: readonly ContentPart[], structured: unknown): boolean {
  const texts = parts.flatMap((part) => part.type === "text" ? [part.text] : []);
  const wrapped = isObject(structured) && Object.keys(structured).length === 1 ? structured.result : undefined;
  return [structured, wrapped].some((value) =>
    value !== undefined && (texts.some((text) => isTextOf(text, value)) ||
      (Array.isArray(value) && value.length === texts.length &&
        texts.every((text, index) => isTextOf(text, value[index]))))
  );
}

function isTextOf(text: string, value: unknown): boolean {
  if (text === value) return true;
  try {
    return canonicalJson(JSON.parse(text)) === canonicalJson(value);
  } catch {
    return false; // a text that is not JSON
  }
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
function resourcePart(resource: UnknownObject): ContentPart {
  const { text, blob, mimeType, uri } = resource;
  if (typeof text === "string") return textOf(text);
  if (typeof blob === "string") {
    return mediaPart(blob, mimeType ?? "application/octet-stream", `resource ${uri ?? ""}`.trim());
  }
  return textOf(resource);
}

/** Converts a file. Providers reject a request with one that is no base64 or has no type, so such a file becomes a text. */
function mediaPart(base64: string, type: unknown, subject: string): ContentPart {
  const [, named, encoded = base64] = base64.match(/^data:([^;,]*)[^,]*;base64,(.*)$/s) ?? []; // some servers send a data URL
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
  const { type, uri, name, mimeType }: UnknownObject = Object(block);
  if (type !== "resource_link" || typeof uri !== "string") return [];
  const named = typeof name === "string" ? name : uri;
  return [{ uri, name: named, ...(typeof mimeType === "string" && { mediaType: mimeType }) }];
}

// Resources, as results of the tools that list and read them.

/** Converts the content of a resource, which may have several parts. */
export function readResource({ contents }: UnknownObject): ToolResult {
  const parts = Array.isArray(contents) ? contents.flatMap((each) => isObject(each) ? [resourcePart(each)] : []) : [];
  return { type: "result", status: "ok", parts };
}

/** Converts a page of a list of resources. */
export function listedResources({ resources, nextCursor }: UnknownObject): UnknownObject {
  const list = (Array.isArray(resources) ? resources : []).map((each) => {
    const { uri, name, title, description, mimeType }: UnknownObject = Object(each);
    return { uri, name, title, description, mimeType };
  });
  return { resources: list, ...(typeof nextCursor === "string" && { nextCursor }) };
}
