/**
 * The defaults and the checks of the options of a server.
 *
 * @module
 */
import type { Context, Env } from "hono";
import { expectChoice, expectTime } from "../core/lib/options.ts";
import { expectNames } from "../protocol/shape.ts";
import { sessionsIn } from "../core/memory.ts";
import type { RunStore } from "../core/store.ts";
import { defaultLimits, limited } from "../core/limits.ts";
import { logError } from "../core/events.ts";
import type { RecoveredRun } from "../session/record/run_host.ts";
import type { ClientGone, RequestVars, ServeOptions } from "./options.ts";

/** The options of a server, with their defaults. */
export type ServerOptions = ReturnType<typeof resolveOptions>;

/** Fills in the defaults. Throws a `RangeError` for an option out of range, and a `TypeError` for an unknown one and for two that exclude each other. */
export function resolveOptions(
  options: ServeOptions & {
    readonly vars?: (c: Context) => unknown;
    readonly recoveryVars?: (run: RecoveredRun) => unknown;
  } = {},
) {
  expectNames("Cannot serve", options, optionNames);
  const { resumeTokens, wires = [], onClientGone = "stop", singleProcess = false } = options;
  const { limits, lease = 30_000, grace = 3_000, heartbeat = 15_000, maxBody = 1_048_576, onError = logError } =
    options;
  if (options.store && resumeTokens) {
    throw new TypeError("Cannot serve with `store` and `resumeTokens`: they exclude each other; expected one of them");
  }
  expectImport("store", options.store, "writer", "durable(adapter) of @jizai/jizai/session/durable");
  expectImport("log", options.log, "records", "a log with `records` of @jizai/jizai/session/log");
  limited(defaultLimits, limits);
  if (!Array.isArray(wires) || wires.some((wire) => typeof wire?.routes !== "function")) {
    throw new TypeError("Cannot serve: expected a list of wires in `wires`, such as [aiSdkUi()]");
  }
  for (const [name, ms] of Object.entries({ heartbeat, lease })) {
    expectTime(`Cannot serve: \`${name}\``, ms);
  }
  expectChoice("Cannot serve", "busy", options.busy ?? "refuse", ["refuse", "queue", "replace"]);
  if (typeof onClientGone !== "function") expectClientGone(onClientGone);
  if (!(maxBody > 0)) {
    throw new RangeError(`Cannot serve: \`maxBody\` is ${maxBody}; expected a positive number of bytes`);
  }
  if (!(grace >= 0)) {
    throw new RangeError(`Cannot serve: \`grace\` is ${grace}; expected a number of milliseconds of 0 or more`);
  }
  /** The sessions of the runs, unless each client keeps its own. */
  const sessions: RunStore | undefined = resumeTokens ? undefined : options.store ?? sessionsIn();
  return {
    ...options,
    sessions,
    wires,
    onClientGone,
    singleProcess,
    limits,
    lease,
    grace,
    heartbeat,
    maxBody,
    onError,
  };
}

const optionNames: readonly (keyof ServeOptions | keyof RequestVars<never, Env>)[] = [
  "store",
  "log",
  "wires",
  "page",
  "resumeTokens",
  "owner",
  "session",
  "busy",
  "onClientGone",
  "lease",
  "singleProcess",
  "signal",
  "grace",
  "onEnd",
  "limits",
  "heartbeat",
  "maxBody",
  "onError",
  "vars",
  "recoveryVars",
];

/** Returns the value of `onClientGone`. Throws a `TypeError` for one that it cannot have, or return. */
export function expectClientGone(value: ClientGone): ClientGone {
  expectChoice("Cannot serve", "onClientGone", value, ["stop", "drain", "detach"]);
  return value;
}

/** Throws a `TypeError` if an option lacks the code that its import brings for a server. */
function expectImport(name: string, option: object | undefined, member: string, expected: string): void {
  if (!option || member in option) return;
  throw new TypeError(`Cannot serve with this \`${name}\`: it has no \`${member}\`; expected ${expected}`);
}
