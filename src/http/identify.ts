/**
 * Step 2 of the request path: who sends a request, with its owner and vars, and which ids it may name.
 *
 * @module
 */
import type { Context, ExecutionContext } from "hono";
import { expectType } from "../core/lib/options.ts";
import { expectedInPlaceOf } from "../core/store.ts";
import { RequestError } from "./error_response.ts";
import type { Operation } from "./operation.ts";
import type { ServerOptions } from "./options.ts";
import { invalid } from "../protocol/shape.ts";
import { ownedKey } from "../session/owned_key.ts";
import type { Requester } from "../session/record/run_host.ts";

/** The client of a request. */
export interface Client extends Requester {
  /** Aborts if the client leaves before the response, on platforms that report it. */
  readonly leaving: AbortSignal;
  /**
   * Calls `listener` if the client leaves, on platforms that end with the response. These do not cancel the stream of a response that comes after its client
   * has left.
   */
  onLeave(listener: () => void): void;
}

/**
 * Returns the client of a request, with its owner and vars. Throws a `RequestError` with status 403 if the `owner` option returns none, and whatever `owner`
 * and `vars` throw. Returns no promise without these options.
 */
export function identify(c: Context, options: ServerOptions): Client | Promise<Client> {
  return options.owner || options.vars ? identified(c, options) : new RequestClient(c, undefined, undefined);
}

/** An id as the server makes it: an owner must leave room for it. */
const exampleId = "x".repeat(36);

async function identified(c: Context, { owner, vars }: ServerOptions): Promise<Client> {
  const ownerId = await owner?.(c);
  if (owner && !ownerId) throw new RequestError(403, "unidentified", "Cannot serve the request: it has no owner");
  expectType("Cannot serve the request", "owner", ownerId, "String");
  if (ownerId !== undefined) expectId("owner", ownerId, ownedKey(ownerId, exampleId));
  return new RequestClient(c, ownerId, await vars?.(c));
}

/** The client of a request. A class, because an object literal with accessors costs a microsecond each time it is created. */
export class RequestClient implements Client {
  readonly owner: string | undefined;
  readonly vars: unknown;
  readonly #c: Context;

  /** Takes the request, and the owner and vars that were found for it. */
  constructor(c: Context, owner: string | undefined, vars: unknown) {
    this.#c = c;
    this.owner = owner;
    this.vars = vars;
  }

  get leaving(): AbortSignal { // Deno warns when the signal is read, and few requests need it
    return this.#c.req.raw.signal;
  }

  outlive(work: Promise<unknown>): void {
    this.#context?.waitUntil(work);
  }

  onLeave(listener: () => void): void {
    if (!this.#context) return;
    if (this.leaving.aborted) listener();
    else this.leaving.addEventListener("abort", listener, { once: true });
  }

  get #context(): ExecutionContext | undefined {
    try {
      return this.#c.executionCtx;
    } catch {
      return undefined; // the platform does not end with the response
    }
  }
}

// The ids that a request names.

/** Throws a `ShapeError` if the operation names a session or a run that cannot exist. */
export function expectIds(operation: Operation, { owner }: Client): void {
  const { session, run } = { session: undefined, run: undefined, ...operation };
  for (const id of [session, run]) if (id !== undefined) expectId("id", id, ownedKey(owner, id));
}

/** Throws a `ShapeError` that names `field` if no session, run or owner can have the id. `key` is the id with its owner. */
function expectId(field: string, id: string, key?: string): void {
  const expected = expectedInPlaceOf(id, key);
  if (expected !== undefined) throw invalid(field, expected);
}
