/**
 * Results of tools on the wire.
 *
 * @module
 */
import { type Artifact, type ContentPart, textOf, type ToolResult } from "../../../../mod.ts";
import { mediaOf, refOf } from "./media.ts";
import { flag, struct, text, texts } from "./struct.ts";
import type * as z from "zod";

/** A result on the wire. */
export interface WireResult {
  /** The text for the model. */
  readonly for_llm: string;
  /** The text for the person. */
  readonly for_user: string;
  /** Whether the person sees nothing. */
  readonly silent: boolean;
  /** Whether the call failed. */
  readonly is_error: boolean;
  /** Whether the call continues in the background. */
  readonly async: boolean;
  /** Images and files: for the person if `response_handled` is true, else for the model. */
  readonly media: readonly string[];
  /** The artifacts that are stored elsewhere. */
  readonly artifact_tags: readonly string[];
  /** Whether the person has received the answer. */
  readonly response_handled: boolean;
}

/** The schema of a result. An absent field is empty. */
export const wireResult: z.core.$ZodType<WireResult> = struct({
  for_llm: text,
  for_user: text,
  silent: flag,
  is_error: flag,
  async: flag,
  media: texts,
  artifact_tags: texts,
  response_handled: flag,
});

/** Converts a result for the wire. */
export function toWireResult(result: ToolResult): WireResult {
  const { status, parts, person = "", silent = false, artifacts = [], handled = false } = result;
  const made = artifacts.map(({ uri }) => uri);
  const shown = parts.flatMap((part) => part.type === "media" ? [refOf(part)] : []);
  return {
    for_llm: textOf(result),
    for_user: person,
    silent,
    is_error: status !== "ok",
    async: false,
    media: handled ? [...shown, ...made] : shown,
    artifact_tags: handled ? [] : made.map((uri) => `[${uri}]`),
    response_handled: handled,
  };
}

/** Converts a result from the wire. Fields that the wire does not carry come from the original, `before`. */
export function fromWireResult(wire: WireResult, before?: ToolResult): ToolResult {
  const { for_llm, for_user, silent, is_error, media, artifact_tags, response_handled: handled } = wire;
  const refs = media.map((ref) => mediaOf(ref) ?? ref);
  const seen = handled ? [] : refs.filter((ref) => typeof ref !== "string");
  const made: readonly Artifact[] = handled
    ? media.map(artifactOf)
    : [...refs.filter((ref) => typeof ref === "string"), ...artifact_tags].map(artifactOf);
  const { status = "ok", context, input } = before ?? {};
  const texts: readonly ContentPart[] = for_llm === "" ? [] : [{ type: "text", text: for_llm }];
  return {
    type: "result",
    status: is_error === (status !== "ok") ? status : is_error ? "error" : "ok",
    parts: [...texts, ...noteOf(artifact_tags, for_llm), ...seen],
    ...(context && { context }),
    ...(input !== undefined && { input }),
    ...(for_user !== "" && { person: for_user }),
    ...(silent && { silent }),
    ...(made.length > 0 && { artifacts: made }),
    ...(handled && { handled }),
  };
}

/** Returns a text for the model with the paths of artifacts. */
function noteOf(tags: readonly string[], text: string): readonly ContentPart[] {
  const note = `Local artifact paths: ${tags.join(" ")}`;
  return tags.length === 0 || text.includes(note) ? [] : [{ type: "text", text: `\n${note}` }];
}

function artifactOf(tag: string): Artifact {
  const uri = tag.replace(/^\[(.*)\]$/s, "$1");
  const { mediaType } = mediaOf(uri) ?? {};
  return { uri, ...(mediaType !== undefined && { mediaType }) };
}
