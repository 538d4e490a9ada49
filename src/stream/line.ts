/**
 * Events as lines of JSON, the form in which they are sent and kept.
 *
 * @module
 */
import type { Event } from "../protocol/event.ts";

/** An event as JSON, on one line. A text delta, which most of them are, is spelled out: it takes two thirds of the time. */
export function lineOf(event: Event): string {
  if (event.type !== "text.delta") return JSON.stringify(event);
  const { turn, part, text } = event;
  return `{"type":"text.delta","turn":${turn},"part":${part},"text":${JSON.stringify(text)}}`;
}
