/**
 * Requests to a served agent, and what comes back.
 *
 * @module
 */
import type { Event } from "../../mod.ts";

/** Whatever answers requests: an app, or one that it is mounted in. */
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

/** An event as it came, with the id of its frame. */
export type Framed = Event & { readonly id: number };

/** Reads frames; throws for whatever else there is. */
export function framesOf(text: string): Framed[] {
  return text.split("\n\n").slice(0, -1).map((frame) => {
    const [, id, data] = frame.match(/^id: (\d+)\ndata: ([^\n]*)$/) ?? [];
    if (data === undefined) throw new Error(`Cannot read frame ${JSON.stringify(frame)}`);
    return { id: Number(id), ...JSON.parse(data) };
  });
}

/** The events of a stream, read to its end. */
export async function eventsOf(response: Response | Promise<Response>): Promise<Framed[]> {
  return framesOf(await (await response).text());
}

/** The first event of `type`; throws where there is none. */
export function first<T extends Event["type"]>(type: T, events: readonly Framed[]): Extract<Framed, { type: T }> {
  const found = events.find((event): event is Extract<Framed, { type: T }> => event.type === type);
  if (!found) throw new Error(`Cannot find ${type} among ${events.map((event) => event.type).join(", ")}`);
  return found;
}

/** The status and the error of an answer. */
export async function refusalOf(response: Response | Promise<Response>): Promise<readonly [number, unknown]> {
  const { status, body, headers } = await response;
  const { error } = await new Response(body, { headers }).json();
  return [status, error];
}

/** Reads a stream piece by piece, none before it is asked for. */
export function piecesOf({ body }: Response) {
  if (!body) throw new Error("Cannot read a response without a body");
  const reader = body.getReader();
  const decoder = new TextDecoder();
  return {
    /** The next piece; nothing at the end. */
    async next(): Promise<string | undefined> {
      const { value } = await reader.read();
      return value && decoder.decode(value);
    },
    /** Everything up to and with a piece that holds `text`; throws where the stream ends before. */
    async until(text: string): Promise<string> {
      let read = "";
      while (!read.includes(text)) {
        const piece = await this.next();
        if (piece === undefined) throw new Error(`Cannot find ${text} in ${read}`);
        read += piece;
      }
      return read;
    },
    /** Everything that is left. */
    async rest(): Promise<string> {
      let read = "";
      for (let piece = await this.next(); piece !== undefined; piece = await this.next()) read += piece;
      return read;
    },
    cancel: () => reader.cancel(),
  };
}
