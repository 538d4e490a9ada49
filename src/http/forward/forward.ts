/**
 * Forwarding: an app in front authenticates requests and forwards them to the object that has the conversation, which accepts no other requests.
 *
 * @module
 */
import { expectNames } from "../../protocol/shape.ts";
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import { hashOf } from "../../core/lib/json.ts";
import { type SecretKey, signatures } from "../../session/resume_token/encryption.ts";
import { readBytes } from "../request_body.ts";
import { RequestError } from "../error_response.ts";

/** Options of `forward()` and `forwarded()`: the same keys on both sides. */
export interface ForwardOptions {
  /**
   * The first key signs; every key is accepted. To change keys, add the new one as the first on both sides, and remove the old one a minute later.
   */
  readonly keys: readonly SecretKey[];
  /** The maximum number of bytes of a body, which `forward()` reads before it signs it. Default: 1,048,576. */
  readonly maxBody?: number;
}

/** The receiver of requests: the stub of a Durable Object, a service binding, an app. */
export interface Stub {
  /** Answers a request. */
  fetch(request: Request): Response | Promise<Response>;
}

/** The header that contains the signed content. */
const header = "x-jizai-forwarded";

/** Milliseconds for which a signature is valid: long enough for an object to start. */
const lifetime = 60_000;

/** The signed content. */
interface Forwarded {
  /** The method, path and query of the request. */
  readonly to: string;
  /** The number of bytes of the body, and their hash. */
  readonly size: number;
  readonly hash: string;
  /** In milliseconds since 1970. */
  readonly expires: number;
  readonly vars?: unknown;
}

/**
 * Forwards a request to `stub` together with `vars`, which must be JSON. The signature covers method, path, query, body and vars. A signature that the client
 * itself sent is removed. The response streams. If the client disconnects, the stream is cancelled and the signal of the forwarded request aborts. On
 * Cloudflare, the signal needs the compatibility date 2026-11-17, or before that the flag `enable_request_signal`: without it, a run whose response is JSON
 * does not stop. A connection that is closed, not reset, is noticed at the next write: a stream writes its heartbeat, JSON writes nothing before its end.
 *
 * Throws a `RangeError` for a key that is too short and for no keys, a `TypeError` for an invalid key id, and an `HTTPException` with status 413 for a body
 * that is too large.
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
 * const app = new Hono().all("/*", (c) => forward(c, object, { user: "Ada" }, { keys })); // from your login
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
export async function forward(
  c: Context,
  stub: Stub,
  vars: unknown,
  options: ForwardOptions,
): Promise<Response> {
  expectNames("Cannot forward the request", options, ["keys", "maxBody"]);
  const { keys, maxBody = 1_048_576 } = options;
  const { raw } = c.req;
  const { sign } = signatures("jizai.forward", keys);
  const body = await readBytes(c, maxBody).catch((error) => {
    if (!(error instanceof RequestError)) throw error; // the request was cut off
    throw rejected(413, "too-large", `Cannot forward the request: its body has more than ${maxBody} bytes`);
  });
  const content: Forwarded = { to: addressOf(raw), ...await digestOf(body), expires: Date.now() + lifetime, vars };
  const headers = new Headers(raw.headers);
  headers.set(header, await sign(JSON.stringify(content)));
  const response = await stub.fetch(new Request(raw, { headers, ...(raw.body && { body }) }));
  return new Response(response.body, response); // a copy, whose headers middleware can change
}

/**
 * Returns the `vars` option of `serve()` for an object behind `forward()`. It checks every request except `GET /` and `GET /health`: one that was not
 * forwarded, was forwarded more than a minute ago, or differs from the forwarded one, is answered with 401.
 *
 * Throws a `RangeError` or `TypeError` for its keys, as `forward()` does.
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
export function forwarded<V>({ keys }: Pick<ForwardOptions, "keys">): (c: Context) => Promise<V> {
  const { verify } = signatures("jizai.forward", keys);
  return async (c) => {
    const verified = await verify(c.req.header(header) ?? "");
    if ("problem" in verified) throw notForwarded();
    const { to, size, hash, expires, vars }: Forwarded = JSON.parse(verified.content); // signed, so made by `forward()`
    if (to !== addressOf(c.req.raw) || Date.now() >= expires) throw notForwarded();
    const isRead = c.req.raw.bodyUsed; // by the server, within its own bound
    const body = await readBytes(c, isRead ? Infinity : size).catch((error) => {
      throw isRead ? error : notForwarded(); // it is larger
    });
    if (body.length !== size || (await digestOf(body)).hash !== hash) throw notForwarded();
    return vars as V; // the vars of the app in front
  };
}

/** Returns the method and the path of a request, which distinguish it from other requests of an app. */
function addressOf({ method, url }: Request): string {
  const { pathname, search } = new URL(url);
  return `${method} ${pathname}${search}`;
}

async function digestOf(body: Uint8Array<ArrayBuffer>): Promise<Pick<Forwarded, "size" | "hash">> {
  return { size: body.length, hash: await hashOf(body) };
}

/** The same error for every reason, so that an attacker learns nothing. */
function notForwarded(): HTTPException {
  return rejected(401, "not-forwarded", "Cannot serve this request: it was not forwarded");
}

function rejected(status: 401 | 413, code: string, message: string): HTTPException {
  return new HTTPException(status, { message, res: Response.json({ error: { code, message } }, { status }) });
}
