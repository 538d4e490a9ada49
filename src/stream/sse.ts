/**
 * An encoder and a parser for server-sent events, and for the events of runs in them. Logs keep the same lines.
 *
 * @module
 */
import type { Event } from "../protocol/event.ts";
import { sentForm } from "../protocol/question.ts";
import { channel, type Sink } from "./channel.ts";

// A parser for server-sent events.

/** The data of a frame, or that of a frame whose event is named `error`. */
export type Frame = string | { readonly error: string };

/**
 * Returns the frames of `body`: one array for every read, which is empty if the read completed no frame. Other names, ids and comments are dropped. Lines end
 * with a line feed, a carriage return, or both. Text after the last empty line is returned as a last frame, which may be incomplete.
 */
export async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<readonly Frame[]> {
  const decoder = new TextDecoder();
  const take = splitter();
  for await (const bytes of body) yield take(decoder.decode(bytes, { stream: true }));
  yield take(`${decoder.decode()}\n\n`);
}

/** Returns a function that splits text into frames, wherever the text is cut. */
function splitter(): (text: string) => readonly Frame[] {
  /** The unfinished line in pieces: it may be an image of megabytes, which is joined once. */
  let pieces: string[] = [];
  let data: string | undefined;
  let isError = false;
  /** Whether the last text ended with a carriage return, which a line feed may follow. */
  let endsWithReturn = false;

  return (numbered) => {
    const complete: Frame[] = [];
    if (numbered === "") return complete;
    let text = endsWithReturn && numbered.startsWith("\n") ? numbered.slice(1) : numbered;
    endsWithReturn = numbered.endsWith("\r");
    if (text.includes("\r")) text = text.replace(/\r\n?/g, "\n");
    if (!text.includes("\n")) {
      pieces.push(text);
      return complete;
    }
    const lines = pieces.join("") + text;
    let start = 0;
    for (let end = lines.indexOf("\n"); end >= 0; end = lines.indexOf("\n", start)) {
      if (end === start) {
        if (isError) complete.push({ error: data ?? "" });
        else if (data !== undefined) complete.push(data);
        data = undefined;
        isError = false;
      } else if (lines.startsWith("data:", start)) {
        const value = lines.slice(start + (lines[start + 5] === " " ? 6 : 5), end);
        data = data === undefined ? value : `${data}\n${value}`;
      } else if (lines.startsWith("event:", start)) {
        isError = lines.slice(start + 6, end).trim() === "error";
      }
      start = end + 1;
    }
    pieces = [lines.slice(start)];
    return complete;
  };
}

// An encoder for server-sent events, and for the events of runs in them.

/** Encodes an event as one line of JSON. Most events are text deltas, which this encodes in less time than JSON.stringify() needs. */
export function lineOf(event: Event): string {
  if (event.type !== "text.delta") return JSON.stringify(sentForm(event));
  const { turn, part, text } = event;
  return `{"type":"text.delta","turn":${turn},"part":${part},"text":"${escaped(text)}"}`;
}

/** The number of characters up to which a loop is faster than JSON.stringify(). */
const loopUpTo = 64;

/** Encodes a text as JSON, without its quotes. Most deltas are short, and JSON contains them as they are. */
function escaped(text: string): string {
  return text.length <= loopUpTo && isPlain(text) ? text : JSON.stringify(text).slice(1, -1);
}

/** Returns false for a text with a character that JSON escapes, and for one with surrogates, because JSON escapes those without a partner. */
function isPlain(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < 0x20 || code === 0x22 || code === 0x5c || (code >= 0xd800 && code <= 0xdfff)) return false;
  }
  return true;
}

/** Returns the index after the line with which those from `start` on have `length` characters, or after the last line. */
export function endOfLines(lines: readonly string[], start: number, length: number): number {
  let end = start;
  for (let left = length; end < lines.length && left > 0; end++) left -= lines[end]?.length ?? 0;
  return end;
}

/** Encodes one frame; `data` is one line. */
export function frame(id: number, data: string): string {
  return `id: ${id}\ndata: ${data}\n\n`;
}

/** Returns an encoder of the frames of one run's events. Most of them are text deltas. What those of a part have in common is encoded once. */
export function eventFrames(): (event: Event, id: number) => string {
  let turn: number | undefined;
  let part: number | undefined;
  let beforeText = "";
  return (event, id) => {
    const { type } = event;
    if (type !== "text.delta") return frame(id, JSON.stringify(sentForm(event)));
    if (event.turn !== turn || event.part !== part) {
      ({ turn, part } = event);
      beforeText = `\ndata: ${JSON.stringify({ type, turn, part, text: "" })}`.slice(0, -'"}'.length);
    }
    return `id: ${id}${beforeText}${escaped(event.text)}"}\n\n`;
  };
}

/** Options of a stream of frames. */
export interface SseOptions<T> {
  /** Encodes an item as one or more frames, or as an empty string. */
  readonly frame: (item: T) => string;
  /** Milliseconds of silence: a comment is sent after half of these to all of them, so that no proxy and no runtime closes the connection; `Infinity` for never. Default: 8,000. */
  readonly heartbeat?: number;
  /** The number of buffered characters at which the writer should wait. Default: 65,536. */
  readonly highWater?: number;
  /** Called if the reader cancels before the end. */
  readonly onCancel?: ((reason: unknown) => void) | undefined;
  /** Called when the stream takes no more items, whether it was closed or cancelled. */
  readonly onEnd?: (() => void) | undefined;
}

const comment = Symbol("comment");

/** Creates a byte stream of frames. Frames that wait together leave as one chunk. */
export function sse<T>(
  { frame, heartbeat = 8_000, highWater = 65_536, onCancel, onEnd }: SseOptions<T>,
): { readonly sink: Sink<T>; readonly stream: ReadableStream<Uint8Array<ArrayBuffer>> } {
  const encoder = new TextEncoder();
  let silent = false;
  const { sink, stream } = channel<T | typeof comment, string, Uint8Array<ArrayBuffer>>({
    keep(item) {
      if (item === comment) return ":\n\n";
      const text = frame(item);
      if (text !== "") silent = false;
      return text;
    },
    merge: (buffered, text) => buffered + text,
    pack(text, send) {
      if (text !== "") send(encoder.encode(text));
    },
    size: (text) => text.length,
    highWater,
    awaitsReader: true,
    onCancel,
    onEnd() {
      clearInterval(timer);
      onEnd?.();
    },
  });
  const beat = () => {
    if (silent && !sink.congested) sink.write(comment); // the client will read other bytes
    silent = !silent;
  };
  const timer = heartbeat === Infinity ? undefined : setInterval(beat, heartbeat / 2);
  return { sink, stream };
}
