/**
 * The page's requests to the server.
 *
 * @module
 */
import { type Entry, type Frame, isRunning, type View } from "./view.ts";

// Frames of a response.

/** Reads server-sent events to their end. Throws if the connection is lost. */
export async function readFrames({ body }: Response, onFrame: (frame: Frame) => void): Promise<void> {
  const decoder = new TextDecoder();
  const reader = body?.getReader();
  let id = 0;
  let rest = "";
  for (;;) {
    const { done, value } = await reader?.read() ?? { done: true };
    if (done) return;
    const text = decoder.decode(value, { stream: true });
    rest += text;
    if (!text.includes("\n")) continue; // a long line is split once, when it is complete
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("id: ")) id = Number(line.slice(4));
      else if (line.startsWith("data: ")) onFrame({ id, event: JSON.parse(line.slice(6)) });
    }
  }
}

// The requests of a conversation.

/** The reason why a request failed or was refused. */
export type Refusal = Pick<Entry, "text" | "failure">;

/** The state of the page, as the connection uses it. */
export interface ConnectionHost {
  /** Aborts when the page leaves the conversation. */
  readonly signal: AbortSignal;
  /** The current view. */
  readonly view: View;
  /** The names of the switches that are off. */
  readonly off: readonly string[];
  /** Adds an event to the view. */
  receive(frame: Frame): void;
  /** Sets the status of the run. */
  setStatus(status: string): void;
  /** Shows whether the connection is lost; an empty text if it is not. */
  setConnection(state: string): void;
  /** Shows why the run cannot be followed. */
  fail(refusal: Refusal): void;
}

/** The body of an error response. A proxy may answer without it. */
interface ErrorBody {
  readonly error?: { readonly code?: string; readonly message?: string; readonly id?: string };
}

/** The requests of the page. */
export interface Connection {
  /** Sends JSON. */
  post(path: string, body?: unknown): Promise<Response>;
  /** Sends JSON for which no events are expected. Returns the reason if it was refused. */
  send(path: string, body?: unknown): Promise<Refusal | undefined>;
  /** Reads the events of a response to its end or to a lost connection. Returns the reason if it was refused. */
  read(opening: Promise<Response>, onFrame: (frame: Frame) => void): Promise<Refusal | undefined>;
  /** Reads the events of a run to its end: those of `opening`, and after a lost connection the rest. */
  follow(opening?: Promise<Response>): Promise<void>;
}

/** Creates the requests to the server at `base`. */
export function connectionOf(base: string, host: ConnectionHost): Connection {
  return { post, send, read, follow };

  function post(path: string, body: unknown = {}): Promise<Response> {
    const { off } = host;
    const headers = { "content-type": "application/json", ...(off.length > 0 && { "x-off": off.join() }) };
    return fetch(base + path, { method: "POST", headers, body: JSON.stringify(body), signal: host.signal });
  }

  async function send(path: string, body?: unknown): Promise<Refusal | undefined> {
    const response = await post(path, body).catch(() => undefined);
    return response?.ok ? undefined : await reasonOf(response);
  }

  async function read(opening: Promise<Response>, onFrame: (frame: Frame) => void): Promise<Refusal | undefined> {
    const response = await opening.catch(() => undefined);
    if (!response?.ok) return await reasonOf(response);
    return await readFrames(response, onFrame).then(() => undefined, () => reasonOf(undefined));
  }

  async function follow(opening?: Promise<Response>): Promise<void> {
    const { signal } = host;
    if (!opening) host.setStatus("running");
    for (let attempt = 0; attempt < 8 && !signal.aborted; attempt++) {
      const response = await (opening ?? resume(signal)).catch(() => undefined);
      opening = undefined;
      if (response?.status === 204) return host.setStatus("over");
      if (response && !response.ok) return host.fail(await reasonOf(response));
      host.setConnection("");
      const onFrame = (frame: Frame) => {
        attempt = 0;
        if (!signal.aborted) host.receive(frame);
      };
      if (response) await readFrames(response, onFrame).catch(() => undefined); // the next attempt asks for the rest
      if (signal.aborted || !isRunning(host.view)) return;
      if (host.view.run === undefined) break;
      host.setConnection("reconnecting");
      await new Promise((next) => setTimeout(next, Math.min(5_000, 200 * 2 ** attempt)));
    }
    if (!signal.aborted) host.fail(await reasonOf(undefined));
  }

  /** Asks for the events that the view does not contain. */
  function resume(signal: AbortSignal): Promise<Response> {
    const { run, at } = host.view;
    return fetch(`${base}/runs/${run}`, { headers: { "last-event-id": String(at) }, signal });
  }

  async function reasonOf(response: Response | undefined): Promise<Refusal> {
    const { error }: ErrorBody = await response?.json().catch(() => undefined) ?? {};
    const { code = response ? `status ${response.status}` : "lost", message, id } = error ?? {};
    const text = message ?? "The server cannot be reached.";
    return { text, failure: { code, ...(id !== undefined && { id }) } };
  }
}
