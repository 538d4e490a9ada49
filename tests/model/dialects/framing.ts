/**
 * The framing of streams: how servers write the frames of a response as server-sent events.
 *
 * @module
 */
import type { Aspects, Form } from "./dialect.ts";
import type { Chance } from "../../support/seeded.ts";

/** The aspects of the framing. */
export const framing = {
  line: ["LF", "CRLF"],
  data: ["with a blank", "without a blank", "on several lines"],
  between: ["nothing", "comments", "ids and names"],
  start: ["at once", "a byte order mark"],
  end: ["an empty line", "one line feed", "none"],
} as const satisfies Aspects;

/** Encodes frames as a stream. */
export function encode(frames: readonly (object | string)[], form: Form<typeof framing>, chance: Chance): Uint8Array {
  const line = { LF: "\n", CRLF: "\r\n" }[form.line];
  const encoded = frames.map((frame) => {
    const data = typeof frame === "string" ? [frame] : linesOf(frame, form);
    const prefix = form.data === "without a blank" ? "data:" : "data: ";
    return [...between(form, chance), ...data.map((text) => prefix + text)].join(line);
  });
  const last = { "an empty line": line + line, "one line feed": line, none: "" }[form.end];
  const start = form.start === "at once" ? "" : "\ufeff";
  return new TextEncoder().encode(start + encoded.join(line + line) + last);
}

function linesOf(frame: object, { data }: Form<typeof framing>): readonly string[] {
  return data === "on several lines" ? JSON.stringify(frame, null, 1).split("\n") : [JSON.stringify(frame)];
}

/** Returns lines that precede those of a frame and have no data. */
function between(form: Form<typeof framing>, { one, below }: Chance): readonly string[] {
  if (form.between === "comments") return one([[], [":", ""], [": keep-alive", ""], [": PROCESSING"]]);
  if (form.between === "ids and names") return [`id: ${below(99)}`, "event: message", "retry: 3000", "unknown: field"];
  return [];
}
