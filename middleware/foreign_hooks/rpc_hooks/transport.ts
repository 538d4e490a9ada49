/**
 * The port through which hooks outside this process are reached: JSON-RPC.
 *
 * @module
 */
import * as z from "zod";

/** A message of JSON-RPC. With an `id` it is a request. */
export interface RpcMessage {
  /** The version. */
  readonly jsonrpc: "2.0";
  /** The id of the request. */
  readonly id?: number;
  /** The method: `hook.before_tool`, `hook.event`, ... */
  readonly method: string;
  /** Its params. */
  readonly params: unknown;
}

/** A connection to one hook. */
export interface Wire extends AsyncDisposable {
  /** Sends a request and returns the message that answers it. Rejects without an answer, or if `signal` aborts. */
  ask(request: RpcMessage & { readonly id: number }, signal: AbortSignal): Promise<unknown>;
  /** Sends a notification. */
  notify(message: RpcMessage, signal: AbortSignal): Promise<void>;
}

/** A program that is a hook. */
export interface Program {
  /** Its name and its arguments. */
  readonly command: readonly string[];
  /** Its working directory. Default: that of this process. */
  readonly dir?: string | undefined;
  /** Variables in addition to the environment of this process. */
  readonly env: Readonly<Record<string, string>>;
}

/** Starts a program and connects to it. Throws if it cannot. */
export type OpenWire = (program: Program) => Wire;

/** The most bytes of one message. */
export const mostBytes = 1_048_576;

/** The reason in an error: a text, or an object with a message. */
const failure = z.union([z.string(), z.object({ message: z.string() }).transform(({ message }) => message)])
  .catch("no reason");
/** An answer. Its `id` may be a string. A message with a `method` and without a result is a request of the hook, which is ignored. */
const reply = z.object({
  id: z.union([z.number(), z.string().regex(/^\d+$/).transform(Number)]),
  method: z.unknown().optional(),
  result: z.unknown().optional(),
  error: z.unknown().optional(),
}).refine(({ method, result, error }) => method === undefined || result !== undefined || error !== undefined);

/** Returns the result in an answer. Throws if the message is not an answer, or contains an error. */
export function resultOf(answer: unknown): unknown {
  const { result, error } = reply.parse(answer);
  if (error !== undefined && error !== null) throw new Error(failure.parse(error));
  return result;
}

/** Returns the id of the request that a message answers; undefined if it is not an answer. */
export function answeredBy(message: unknown): number | undefined {
  const { success, data } = reply.safeParse(message);
  return success ? data.id : undefined;
}
