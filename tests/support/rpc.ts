/**
 * Hooks of PicoClaw for tests: in this process, or as scripted programs.
 *
 * @module
 */
import type { Event } from "@jizai/jizai";
import {
  type Builtin,
  type OpenWire,
  rpc_hooks,
  type RpcHooks,
  type RpcHooksOptions,
} from "@jizai/jizai/middleware/rpc_hooks";
import { linesOf, linesWire } from "../../middleware/foreign_hooks/picoclaw/rpc_hooks/lines.ts";

/** Creates the middleware with hooks in this process, in the order of their names. */
export function builtins(
  hooks: Readonly<Record<string, Builtin>>,
  { defaults = {}, ...options }: RpcHooksOptions & { readonly defaults?: Readonly<Record<string, number>> } = {},
): RpcHooks {
  const each = <T>(make: (hook: Builtin) => T) =>
    Object.fromEntries(Object.entries(hooks).map(([name, hook]) => [name, make(hook)]));
  return rpc_hooks({ defaults, builtins: each(() => ({ enabled: true })) }, {
    ...options,
    builtins: each((hook) => () => hook),
  });
}

/** A message that a program receives. */
export interface ReceivedMessage {
  readonly id?: number;
  readonly method: string;
  // deno-lint-ignore no-explicit-any -- params of any method
  readonly params: any;
}

/** Sends a message of a program. A text is a raw line. */
export type Send = (
  message: string | { readonly id?: number; readonly result?: unknown; readonly error?: unknown },
) => Promise<void>;

/** A program: handles each message. `exit` ends it. */
export type Program = (message: ReceivedMessage, send: Send, exit: () => void) => void | Promise<void>;

/** Creates a `stdio` that runs programs in this process, by the first word of their command. */
export function programs(all: Readonly<Record<string, Program>>): { readonly stdio: OpenWire; readonly ran: string[] } {
  const ran: string[] = [];
  return {
    ran,
    stdio({ command: [name = ""] }) {
      const program = all[name];
      if (!program) throw new Error(`Cannot start ${name}: there is no such program`);
      ran.push(`start ${name}`);
      const input = new TransformStream<Uint8Array, Uint8Array>();
      const output = new TransformStream<Uint8Array, Uint8Array>();
      void run(program, input.readable, output.writable).then(() => ran.push(`end ${name}`));
      return linesWire({ readable: output.readable, writable: input.writable });
    },
  };
}

async function run(
  program: Program,
  input: ReadableStream<Uint8Array>,
  output: WritableStream<Uint8Array>,
): Promise<void> {
  const writer = output.getWriter();
  const encoder = new TextEncoder();
  const leaving = new AbortController();
  const send: Send = async (message) => {
    const line = typeof message === "string" ? message : JSON.stringify({ jsonrpc: "2.0", ...message });
    await writer.write(encoder.encode(`${line}\n`)).catch(() => {}); // the reader was closed
  };
  for await (const line of linesOf(input)) {
    await program(JSON.parse(line), send, () => leaving.abort());
    if (leaving.signal.aborted) break;
  }
  await writer.close().catch(() => {}); // the reader was closed
}

/** A program that answers `hook.hello`, and other methods with `answers`. */
export function answering(answers: Readonly<Record<string, (params: ReceivedMessage["params"]) => unknown>>): Program {
  return async ({ id, method, params }, send) => {
    const answer = answers[method];
    if (id === undefined) return void answer?.(params);
    await send({ id, result: method === "hook.hello" && !answer ? { ok: true } : answer?.(params) ?? {} });
  };
}

/** The messages of the warnings. */
export function warnings(events: readonly Event[]): string[] {
  return events.flatMap((event) => event.type === "warning" ? [event.message] : []);
}
