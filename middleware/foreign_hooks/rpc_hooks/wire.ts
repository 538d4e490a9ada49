/**
 * Ways to hooks elsewhere.
 *
 * @module
 */
import * as z from "zod";
import { cancellationOf, startTimer, withGracePeriod } from "../../../src/core/kit.ts";

/** A message of JSON-RPC. With an `id` it is a request. */
export interface RpcMessage {
  /** The version. */
  readonly jsonrpc: "2.0";
  /** What its answer is known by. */
  readonly id?: number;
  /** What is asked, or told: `hook.before_tool`, `hook.event`, ... */
  readonly method: string;
  /** What it is about. */
  readonly params: unknown;
}

/** A way to one hook. */
export interface Wire extends AsyncDisposable {
  /** Sends a request, and gives the message that answers it. Rejects where there is none, or `signal` aborts. */
  ask(request: RpcMessage & { readonly id: number }, signal: AbortSignal): Promise<unknown>;
  /** Sends a message that nobody answers. */
  tell(message: RpcMessage, signal: AbortSignal): Promise<void>;
}

/** A program that is a hook. */
export interface Program {
  /** Its name, and what it is given. */
  readonly command: readonly string[];
  /** Where it runs. Default: where this process does. */
  readonly dir?: string | undefined;
  /** Variables of its environment, beside those of this process. */
  readonly env: Readonly<Record<string, string>>;
}

/** Starts a program, and opens a way to it. Throws where it cannot. */
export type OpenWire = (program: Program) => Wire;

/** The most bytes of one message. */
export const mostBytes = 1_048_576;

/** The reason of a failure, which some give in a message of its own. */
const failure = z.union([z.string(), z.object({ message: z.string() }).transform(({ message }) => message)])
  .catch("no reason");
/** An answer: an `id` counts as a text too, and what has a `method` alone is a request of the hook's, which nobody hears. */
const reply = z.object({
  id: z.union([z.number(), z.string().regex(/^\d+$/).transform(Number)]),
  method: z.unknown().optional(),
  result: z.unknown().optional(),
  error: z.unknown().optional(),
}).refine(({ method, result, error }) => method === undefined || result !== undefined || error !== undefined);

/** What an answer says. Throws where it is none, or says that the hook failed. */
export function resultOf(answer: unknown): unknown {
  const { result, error } = reply.parse(answer);
  if (error !== undefined && error !== null) throw new Error(failure.parse(error));
  return result;
}

/** The request that a message answers; nothing where it is no answer. */
export function answeredBy(message: unknown): number | undefined {
  const read = reply.safeParse(message);
  return read.success ? read.data.id : undefined;
}

/** What `work` comes to, if it does in `ms` milliseconds; its signal aborts when they are over. What comes later is dropped. */
export async function inTime<T>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const own = AbortSignal.any([signal, late.signal]);
  const timer = startTimer(() => late.abort(new DOMException(`Not done after ${ms} ms`, "TimeoutError")), ms);
  try {
    own.throwIfAborted();
    return await withGracePeriod(work(own), cancellationOf(own), 0, () => {});
  } finally {
    clearTimeout(timer);
  }
}
