/**
 * The framing of streams: how servers write the frames of a response as server-sent events.
 *
 * @module
 */
import { type Aspects, type Form, NamedFrame } from "./dialect.ts";
import type { Chance } from "../../support/seeded.ts";

/** The aspects of the framing. */
export const framing = {
  line: ["LF", "CRLF", "CR", "mixed"],
  data: ["with a blank", "without a blank", "on several lines"],
  between: ["nothing", "comments", "ids and names", "empty data"],
  start: ["at once", "a byte order mark"],
  type: ["text/event-stream", "application/json", "none"],
  end: ["an empty line", "one line feed", "none"],
} as const satisfies Aspects;

/** Encodes frames as a stream. */
export function encode(frames: readonly (object | string)[], form: Form<typeof framing>, chance: Chance): Uint8Array {
  const end = () => ({ LF: "\n", CRLF: "\r\n", CR: "\r", mixed: chance.one(["\n", "\r\n"]) })[form.line];
  const lines = frames.flatMap((frame) => [...between(form, chance), ...linesOf(frame, form), ""]);
  const kept = { "an empty line": 0, "one line feed": 1, none: 2 }[form.end];
  const text = lines.map((line, at) => at < lines.length - 2 ? line + end() : at === lines.length - 2 ? line : "").join(
    "",
  );
  const last = Array.from({ length: 2 - kept }, end).join("");
  return new TextEncoder().encode((form.start === "at once" ? "" : "\ufeff") + text + last);
}

/** Returns the lines of a frame. */
function linesOf(frame: object | string, form: Form<typeof framing>): readonly string[] {
  if (frame instanceof NamedFrame) return [`event: ${frame.event}`, ...linesOf(frame.data, form)];
  const prefix = form.data === "without a blank" ? "data:" : "data: ";
  if (typeof frame === "string") return [prefix + frame];
  const data = form.data === "on several lines" ? JSON.stringify(frame, null, 1).split("\n") : [JSON.stringify(frame)];
  return data.map((text) => prefix + text);
}

/** Returns lines that precede those of a frame and have no content. */
function between(form: Form<typeof framing>, { one, below }: Chance): readonly string[] {
  if (form.between === "comments") return one([[], [":", ""], [": keep-alive", ""], [": PROCESSING"]]);
  if (form.between === "ids and names") return [`id: ${below(99)}`, "event: message", "retry: 3000", "unknown: field"];
  return form.between === "empty data" ? one([[], ["data:", ""], ["data: ", ""], ["data:"]]) : [];
}
