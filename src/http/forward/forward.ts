/**
 * Forwarding: an app in front knows who is asking, and hands the request to the object that has the conversation, which believes nobody else.
 *
 * @module
 */
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import { signatures, type SigningKey } from "../../session/resume_token/signature.ts";

/** What both sides know. */
export interface ForwardOptions {
  /** The first signs; all of them are believed. To change keys, put the new one first on both sides, and leave the old one out a minute later. */
  readonly keys: readonly SigningKey[];
}

/** Who takes requests: the stub of a Durable Object, a service binding, an app. */
export interface Stub {
  /** Answers a request. */
  fetch(request: Request): Response | Promise<Response>;
}

/** Where the vars are said, signed. */
const header = "x-jizai-forwarded";

/** Milliseconds for which that counts: as long as it may take an object to start. */
const lasting = 60_000;

/** What is signed. */
interface Forwarded {
  /** The request that it counts for. */
  readonly to: string;
  /** In milliseconds since 1970. */
  readonly expires: number;
  readonly vars?: unknown;
}

/**
 * Hands a request to `stub`, with what is known of who asks: `vars`, which JSON has to be able to say. Whatever the client itself said in their place is
 * left out. Bodies stream through both ways, and a client that leaves is seen to leave by whoever answers. Nobody may have read the body of the request.
 *
 * Throws a `RangeError` for a key that is too short and for none, and a `TypeError` for an id that no signature can name.
 *
 * ```ts
 * import { agent, serve, vars } from "@jizai/jizai";
 * import { forward, forwarded, type Stub } from "@jizai/jizai/forward";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals, assertStringIncludes } from "@std/assert";
 * import { Hono } from "hono";
 *
 * const keys = [{ id: "k1", secret: "at least 32 bytes of your own choice" }];
 *
 * // In the object:
 * const assistant = agent({
 *   vars: vars<{ user: string }>(),
 *   model: ({ vars }) => scripted(`Hello ${vars.user}!`),
 * });
 * const object: Stub = serve(assistant, { vars: forwarded({ keys }) });
 *
 * // In front of it:
 * const app = new Hono().all("/*", (c) => forward(c, object, { user: "Ada" }, { keys })); // as your login says
 *
 * const request = (app: Stub) =>
 *   app.fetch(
 *     new Request("http://localhost/runs", {
 *       method: "POST",
 *       headers: { "content-type": "application/json" },
 *       body: JSON.stringify({ prompt: "Hi" }),
 *     }),
 *   );
 * assertStringIncludes(await (await request(app)).text(), "Hello Ada!");
 * assertEquals((await request(object)).status, 401);
 * ```
 */
export async function forward(c: Context, stub: Stub, vars: unknown, { keys }: ForwardOptions): Promise<Response> {
  const { raw } = c.req;
  const signed: Forwarded = { to: addressOf(raw), expires: Date.now() + lasting, vars };
  const headers = new Headers(raw.headers);
  headers.set(header, await signatures("jizai.forward", keys).sign(JSON.stringify(signed)));
  const response = await stub.fetch(new Request(raw, { headers }));
  return new Response(response.body, response); // the same, but with headers that middleware may change
}

/**
 * Reads what `forward()` said, for the `vars` of `serve()`. A request that was not forwarded, or not just now, or was forwarded as another one, is
 * answered with 401.
 *
 * Throws as `forward()` does.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { forwarded } from "@jizai/jizai/forward";
 * import { scripted } from "@jizai/jizai/model/scripted";
 *
 * const keys = [{ id: "k1", secret: "at least 32 bytes of your own choice" }];
 * export const app = serve(agent({ model: scripted("Hello!") }), { vars: forwarded({ keys }) });
 * ```
 */
export function forwarded<V>({ keys }: ForwardOptions): (c: Context) => Promise<V> {
  const { verify } = signatures("jizai.forward", keys);
  return async ({ req }) => {
    const verified = await verify(req.header(header) ?? "");
    if ("problem" in verified) throw refused();
    const { to, expires, vars }: Forwarded = JSON.parse(verified.content); // signed, so made by `forward()`
    if (to !== addressOf(req.raw) || Date.now() >= expires) throw refused();
    return vars as V; // what the app in front gave
  };
}

/** What tells one request of an app from another. */
function addressOf({ method, url }: Request): string {
  const { pathname, search } = new URL(url);
  return `${method} ${pathname}${search}`;
}

/** The same whatever is wrong: whoever tries learns nothing. */
function refused(): HTTPException {
  const message = "Cannot serve this request: it was not forwarded";
  return new HTTPException(401, { message, res: Response.json({ error: { code: "not-forwarded", message } }) });
}
