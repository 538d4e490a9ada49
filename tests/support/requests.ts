/**
 * Requests to a served agent, and their responses.
 *
 * @module
 */
import type { Event } from "../../mod.ts";

/** An app, or an app in which it is mounted. */
export interface App {
  readonly request: (path: string, init?: RequestInit) => Response | Promise<Response>;
}

/** Sends `body` as JSON. */
export async function post(
  app: App,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const json = { headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) };
  return await app.request(path, { method: "POST", headers, ...(body !== undefined && json) });
}

/** Returns the refusal of a body of more than `max` bytes. */
export function tooLarge(max: number): readonly [status: number, error: object] {
  const fix = "the session has the history, so send the newest message only, with newestMessageOnly of " +
    '"@jizai/jizai/client" in useChat, or raise `maxBody` of serve()';
  return [413, { code: "too-large", message: `Cannot read the body: it has more than ${max} bytes; ${fix}` }];
}

/** A received event, with the id of its frame. */
export type Framed = Event & { readonly id: number };

/** Parses frames. Comments, which a stream sends while it is silent, are left out. Throws for other content. */
export function framesOf(text: string): Framed[] {
  return text.split("\n\n").slice(0, -1).filter((frame) => frame !== ":").map((frame) => {
    const [, id, data] = frame.match(/^id: (\d+)\ndata: ([^\n]*)$/) ?? [];
    if (data === undefined) throw new Error(`Cannot read frame ${JSON.stringify(frame)}`);
    return { id: Number(id), ...JSON.parse(data) };
  });
}

/** Reads the events of a stream to its end. */
export async function eventsOf(response: Response | Promise<Response>): Promise<Framed[]> {
  return framesOf(await (await response).text());
}

/** Returns the first event of `type`. Throws if there is none. */
export function first<T extends Event["type"]>(type: T, events: readonly Framed[]): Extract<Framed, { type: T }> {
  const found = events.find((event): event is Extract<Framed, { type: T }> => event.type === type);
  if (!found) throw new Error(`Cannot find ${type} among ${events.map((event) => event.type).join(", ")}`);
  return found;
}

/** Returns the status and the error of a response. */
export async function refusalOf(response: Response | Promise<Response>): Promise<readonly [number, unknown]> {
  const { status, body, headers } = await response;
  const { error } = await new Response(body, { headers }).json();
  return [status, error];
}

/** Reads a stream chunk by chunk, on demand. */
export function piecesOf({ body }: Response) {
  if (!body) throw new Error("Cannot read a response without a body");
  const reader = body.getReader();
  const decoder = new TextDecoder();
  return {
    /** Returns the next chunk; `undefined` at the end. */
    async next(): Promise<string | undefined> {
      const { value } = await reader.read();
      return value && decoder.decode(value);
    },
    /** Returns all text up to the chunk that contains `text`. Throws if the stream ends first. */
    async until(text: string): Promise<string> {
      let read = "";
      while (!read.includes(text)) {
        const piece = await this.next();
        if (piece === undefined) throw new Error(`Cannot find ${text} in ${read}`);
        read += piece;
      }
      return read;
    },
    /** Returns the rest of the text. */
    async rest(): Promise<string> {
      let read = "";
      for (let piece = await this.next(); piece !== undefined; piece = await this.next()) read += piece;
      return read;
    },
    cancel: () => reader.cancel(),
  };
}
