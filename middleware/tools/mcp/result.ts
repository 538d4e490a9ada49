/**
 * Converts the results of MCP tools.
 *
 * @module
 */
import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/client";
import type { Artifact, ContentPart, ToolResult } from "../../../mod.ts";

/** Converts a result. A link becomes a text for the model and an artifact for the client. */
export function resultOf({ content, structuredContent, isError }: CallToolResult): ToolResult {
  const parts = content.map(partOf);
  const artifacts = content.flatMap(artifactOf);
  if (parts.length === 0 && structuredContent !== undefined) {
    parts.push({ type: "text", text: JSON.stringify(structuredContent) });
  }
  return { type: "result", status: isError ? "error" : "ok", parts, ...(artifacts.length > 0 && { artifacts }) };
}

function partOf(block: ContentBlock): ContentPart {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "image":
    case "audio":
      return { type: "media", mediaType: block.mimeType, data: block.data };
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return { type: "text", text: resource.text };
      return { type: "media", mediaType: resource.mimeType ?? "application/octet-stream", data: resource.blob };
    }
    case "resource_link":
      return { type: "text", text: `${block.title ?? block.name}: ${block.uri}` };
  }
}

function artifactOf(block: ContentBlock): readonly Artifact[] {
  if (block.type !== "resource_link") return [];
  const { uri, name, mimeType } = block;
  return [{ uri, name, ...(mimeType !== undefined && { mediaType: mimeType }) }];
}
