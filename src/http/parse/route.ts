/**
 * Routes: an address, and the operation that its requests ask for.
 *
 * @module
 */
import type { Context } from "hono";
import { expectType } from "../../core/lib/options.ts";
import { expectedInPlaceOf } from "../../core/store.ts";
import { invalid } from "../../protocol/shape.ts";
import type { WireError } from "../../wire/wire.ts";
import type { ServerOptions } from "../server_options.ts";
import type { Operation } from "./operation.ts";

/** An address of the server. */
export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  /** The path, in which `:name` is a parameter. */
  readonly path: string;
  /** Step 1 of the request path. Throws a `ShapeError` or a `RequestError` if the request cannot be read. */
  parse(c: Context): Operation | Promise<Operation>;
  /** Makes the body of an error response. Default: `{ error }`. */
  readonly errorBody?: ((error: WireError) => object) | undefined;
}

/** Throws a `ShapeError` that names `field` if no session, run or owner can have the id. `key` is the id with its owner. */
export function expectId(field: string, id: string, key?: string): void {
  const expected = expectedInPlaceOf(id, key);
  if (expected !== undefined) throw invalid(field, expected);
}

/**
 * Returns the session that the URL of a request names, by the `session` option. A native request that names another one in its body is refused. The clients of
 * wires always name a session of their own, which this one replaces. Returns no promise without the option.
 */
export function addressedSession(c: Context, { session }: ServerOptions): Promise<string | undefined> | undefined {
  return session && checkedSession(session(c));
}

async function checkedSession(named: ReturnType<NonNullable<ServerOptions["session"]>>): Promise<string | undefined> {
  const id = await named;
  expectType("Cannot serve the request", "session", id, "String");
  return id;
}
