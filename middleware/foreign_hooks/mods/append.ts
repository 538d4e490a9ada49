/**
 * The event `session.append`: a message at the door of the transcript, whose texts mods may change.
 *
 * @module
 */
import { loopOf } from "./session_view.ts";
import type { Data } from "./patterns.ts";
import type { At, ModRun } from "./run.ts";
import { objectOf } from "../kit/answers.ts";

/** The places at which messages enter the transcript. */
type Door = "prompt" | "response" | "tool-result";

/** Whether a mod names the event. It is of later builds, and a hook of all events need not know it. */
export function appends({ links }: ModRun): boolean {
  return links.some(({ pattern }) => pattern === "session.append" || pattern === "session.*");
}

/** Raises `session.append` for a message, and returns the texts of its blocks. Only texts and the content of results may change. */
export async function appendedText(run: ModRun, at: At, door: Door, message: Data): Promise<readonly string[]> {
  if (!appends(run)) return [];
  const e = { message, door, origin: { kind: "engine" }, uuid: crypto.randomUUID(), ...loopOf(at.ctx.run) };
  const answer = await run.raise("session.append", e, ({ message }) => Promise.resolve({ message }), at);
  const { content } = objectOf(answer.message);
  return (Array.isArray(content) ? content : []).map(objectOf).flatMap(({ text, content }) => {
    const shown = text ?? content;
    return typeof shown === "string" ? [shown] : [];
  });
}
