/**
 * Prompts at times, for `Deno.cron`, for the cron triggers of Cloudflare Workers, and for a process that lives.
 *
 * @module
 */
import { delay, startTimer } from "../core/lib/cancellation.ts";
import { expectChoice, expectType } from "../core/lib/options.ts";
import { expectedInPlaceOf } from "../core/store.ts";
import { type AdmittedStart, promptInput } from "./admission.ts";
import { type CronTimes, cronTimes } from "./cron.ts";
import { reportError, requestErrorOf, shuttingDown } from "./error_response.ts";
import type { Client } from "./identify.ts";
import type { Server, StartScope } from "./operation.ts";
import type { Busy } from "./options.ts";
import { startOnce } from "./request_path.ts";
import type { ServedApp } from "./serve.ts";
import { expectNames } from "../protocol/shape.ts";
import { ownedKey } from "../session/owned_key.ts";
import type { LaunchInput, LiveRun } from "../session/record/run_host.ts";

export type { Busy, ServedApp };

/** A prompt at times: each time begins one run, over all processes with the same store. */
export interface ScheduledPrompt {
  /** The name, which no other schedule of the app has: 1 to 64 letters, digits, spaces, `-` and `_`. A run of an old name does not count for a new one. */
  readonly name: string;
  /** The times, in UTC: minute, hour, day of the month, month and day of the week, such as "0 7 * * MON-FRI". Days of the week are names. */
  readonly cron: string;
  /** The prompt, or a function that returns it. The function is called again if the run cannot begin. */
  readonly prompt: string | ((occasion: Occasion) => string | Promise<string>);
  /** The session of all runs, which is created if it does not exist. Default: each time has a new one. */
  readonly session?: string;
  /** The owner of the runs and their sessions. Needed if the server has the `owner` option. Default: none. */
  readonly owner?: string;
  /**
   * The effect if another run has the `session`: `refuse` leaves out this time, `queue` waits (at most ten wait for a session), `replace` stops the other
   * run. Default: as the server.
   */
  readonly busy?: Busy;
}

/** Times at which the server calls `recover()` and `sweep()`: runs whose process died continue, and what is not kept any more is deleted. */
export interface ScheduledRecovery {
  /** The name, as that of a prompt. */
  readonly name: string;
  /** The times, as those of a prompt. */
  readonly cron: string;
  /** Always true. */
  readonly recover: true;
}

/** A prompt, or a recovery, at times. */
export type Schedule = ScheduledPrompt | ScheduledRecovery;

/** One time of a schedule. */
export interface Occasion {
  /** The time for which the run was scheduled, a full minute. */
  readonly time: Date;
}

/** Registers a cron job, as `Deno.cron` does. */
export type RegisterCron = (
  name: string,
  cron: string,
  options: { signal?: AbortSignal },
  handler: () => Promise<void>,
) => Promise<void>;

/** Schedules, and what wakes them on each platform. Use one of the three. */
export interface Schedules {
  /**
   * Registers each schedule with `Deno.cron`, on Deno and Deno Deploy. Call it where the program starts, not in a request. A job ends with its run; times that
   * pass before are left out.
   */
  readonly register: (cron: RegisterCron) => void;
  /**
   * Handles a cron trigger of Cloudflare Workers: `export default { fetch: app.fetch, scheduled: schedules.scheduled }`. Resolves when the runs are over. Rejects
   * if no schedule has the `cron` of the trigger.
   */
  readonly scheduled: (trigger: { readonly cron: string; readonly scheduledTime: number }) => Promise<void>;
  /** Starts the timers of a process that lives, such as one of Node or Bun. They stop when the `signal` of the server aborts. */
  readonly start: () => void;
}

/**
 * Schedules prompts of an app that `serve()` has returned. Each run begins as if a client had sent its prompt: with the limits, the capacity, the store, the hooks
 * and the reports of the server. The vars of its agent are those that `recoveryVars` returns.
 *
 * Each time of a schedule has one run over all processes: the time is its idempotency key, kept for `events.keep`. With sessions in memory, that holds for one
 * process. If a run cannot begin, for example because the store fails, that is tried again for five minutes at most, and not after the next time. Then `onError`
 * receives the reason. A run whose process dies continues like any other, by a schedule with `recover: true` or by a request.
 *
 * Throws a `TypeError` for a name, an expression or an owner that cannot be used, and if `recoveryVars` is missing.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { schedule } from "@jizai/jizai/schedule";
 *
 * const closing = new AbortController();
 * const app = serve(agent({ model: scripted("All is well.") }), { signal: closing.signal });
 * const schedules = schedule(app, [
 *   { name: "report", cron: "0 7 * * MON-FRI", prompt: ({ time }) => `Report about the day before ${time.toISOString()}.` },
 *   { name: "recover", cron: "* * * * *", recover: true },
 * ]);
 * schedules.start();
 * closing.abort(); // at the end of the process
 * ```
 */
export function schedule(
  app: Pick<ServedApp, "recover" | "sweep" | "~server">,
  schedules: readonly Schedule[],
): Schedules {
  const server = expectServer(app);
  if (!Array.isArray(schedules)) throw new TypeError("Cannot schedule: expected a list of schedules");
  const { runs, options: { signal, keep, store } } = server;
  const items = schedules.map((item) => ({ ...item, times: expectSchedule(item, server) }));
  for (const { name } of items) {
    if (items.filter((item) => item.name === name).length > 1) {
      throw new TypeError(`Cannot schedule "${name}": another schedule has this name`);
    }
  }

  /** Does the work of one time. Never rejects. */
  async function work(item: Timed, ms: number): Promise<void> {
    const time = new Date(ms);
    const done = "recover" in item ? recover(app) : beginRun(server, item, time);
    const settled = done.catch((error) => {
      const { message } = error instanceof Error ? error : new Error(String(error));
      const report = `Cannot run schedule "${item.name}" at ${time.toISOString()}: ${message}`;
      const place = "recover" in item ? {} : { session: item.session, owner: item.owner };
      reportError(server.options.onError, new Error(report, { cause: error }), place);
    });
    runs.track(settled);
    await settled;
  }

  return {
    register(cron) {
      for (const item of items) {
        const handler = () => work(item, item.times.last(Date.now() + tolerance));
        cron(item.name, item.cron, signal ? { signal } : {}, handler).catch((error) => runs.report(error));
      }
    },
    async scheduled({ cron, scheduledTime }) {
      const due = items.filter((item) => fieldsOf(item.cron) === fieldsOf(cron));
      if (due.length === 0) {
        const expected = items.map((item) => `"${item.cron}"`).join(", ");
        throw new TypeError(`Cannot run the schedule of the trigger "${cron}": expected one of ${expected}`);
      }
      await Promise.all(due.map((item) => work(item, item.times.last(scheduledTime + tolerance))));
    },
    start() {
      const since = Date.now() - (store?.durable ? longestStart : 0); // in memory, a restart has forgotten which times have run
      for (const item of items) keepTime(item.times, { since, keep, signal }, (ms) => void work(item, ms)); // it never rejects
    },
  };
}

/** A schedule with its times. */
type Timed = Schedule & { readonly times: CronTimes };

/** Milliseconds by which a platform may call too early for a time. */
const tolerance = 5_000;

/** The most milliseconds for which a run that cannot begin is tried again. A process that starts makes up for times since then. */
const longestStart = 300_000;

/** Returns the fields of an expression in one form. */
function fieldsOf(cron: string): string {
  return cron.trim().split(/\s+/).join(" ");
}

// The checks of schedules.

/** Returns the server of an app. Throws a `TypeError` if it cannot run schedules. */
function expectServer(app: Pick<ServedApp, "~server">): Server {
  const server = app?.["~server"] as Server | undefined; // serve() of the same package has set it
  if (!server) throw new TypeError("Cannot schedule: expected the app that serve() returns");
  const { options, runs } = server;
  if (!runs.records) {
    throw new TypeError("Cannot schedule: the server keeps neither sessions nor events; expected a `store`");
  }
  if (options.vars && !options.recoveryVars) {
    throw new TypeError("Cannot schedule: the vars are made from requests; expected the option recoveryVars");
  }
  return server;
}

/** Returns the times of a schedule. Throws a `TypeError` if it cannot be used. */
function expectSchedule(item: Schedule, server: Server): CronTimes {
  expectNames("Cannot schedule", item, ["name", "cron", "prompt", "session", "owner", "busy", "recover"]);
  const { name, cron } = item;
  if (typeof name !== "string" || !/^[\w -]{1,64}$/.test(name)) {
    throw new TypeError(`Cannot schedule "${name}": expected a name of 1 to 64 letters, digits, spaces, - and _`);
  }
  const operation = `Cannot schedule "${name}"`;
  if ("recover" in item) {
    expectNames(`${operation} with \`recover\``, item, ["name", "cron", "recover"]);
    if (item.recover !== true) throw new TypeError(`${operation}: \`recover\` is ${item.recover}; expected true`);
    return cronTimes(operation, cron);
  }
  const { prompt, session, owner, busy } = item;
  if (typeof prompt !== "string" && typeof prompt !== "function") {
    throw new TypeError(`${operation}: expected a \`prompt\`, a text or a function, or \`recover: true\``);
  }
  expectType(operation, "session", session, "String");
  expectType(operation, "owner", owner, "String");
  if ((owner !== undefined) !== (server.options.owner !== undefined)) {
    const expected = owner === undefined
      ? "an `owner`, since its server has owners"
      : "no `owner`, since its server has none";
    throw new TypeError(`${operation}: expected ${expected}`);
  }
  for (const [field, id, key] of [["owner", owner], ["session", session, ownedKey(owner, session ?? "")]] as const) {
    const expected = id === undefined ? undefined : expectedInPlaceOf(id, key);
    if (expected !== undefined) throw new TypeError(`${operation}: \`${field}\` is "${id}"; expected ${expected}`);
  }
  if (busy !== undefined) expectChoice(operation, "busy", busy, ["refuse", "queue", "replace"]);
  return cronTimes(operation, cron);
}

// The time of a process that lives.

/** The most milliseconds until the clock is read again: it may be changed, and a process may sleep. */
const longestWait = 60_000;

/** The most milliseconds by which a process is late, so that processes do not all begin at once. */
const spread = 1_000;

/** Calls `work` for each time after `since`, until the signal aborts. Of the times that have passed meanwhile, only the last one counts, if it is not older than `keep`. */
function keepTime(
  times: CronTimes,
  { since, keep, signal }: { readonly since: number; readonly keep: number; readonly signal: AbortSignal | undefined },
  work: (ms: number) => void,
): void {
  let done = since;
  let timer: ReturnType<typeof setTimeout> | undefined;
  function look(): void {
    if (signal?.aborted) return;
    const now = Date.now();
    done = Math.min(done, now); // the clock may have been set back
    const time = times.last(now);
    if (time > done) {
      done = time;
      if (now - time < keep) work(time);
    }
    timer = startTimer(look, Math.min(times.next(now) - now + Math.random() * spread, longestWait));
  }
  look();
  signal?.addEventListener("abort", () => clearTimeout(timer), { once: true });
}

// The work of one time.

/** Continues lost runs to their end, and deletes what is not kept any more. */
async function recover(app: Pick<ServedApp, "recover" | "sweep">): Promise<void> {
  const { over } = await app.recover();
  await over;
  await app.sweep();
}

/** Milliseconds before the first and before each later attempt to begin a run. */
const [firstWait, lastWait] = [2_000, 30_000];

/** Begins the run of a time, unless it has begun, and waits for its end. Tries again if it cannot begin. Rejects with the reason in the end. */
async function beginRun(server: Server, item: ScheduledPrompt & Timed, time: Date): Promise<void> {
  const { observe, signal = new AbortController().signal } = server.options;
  const now = Date.now();
  const until = Math.min(now + longestStart, item.times.next(now));
  for (let wait = firstWait;; wait = Math.min(2 * wait, lastWait)) {
    try {
      return await start(server, item, time);
    } catch (error) {
      const { status = 500, code } = requestErrorOf(error) ?? {};
      observe?.({ type: "request.refused", route: "schedule", status, ...(code !== undefined && { code }) });
      if (code === "busy") return; // this time is left out
      if (status < 500 || Date.now() + wait >= until) throw error;
      await delay(wait, signal).catch(() => Promise.reject(error)); // the server shuts down
    }
  }
}

/** Takes the steps of a request, from its admission to its launch. Resolves when the run is over, or when another start has begun it. */
async function start(server: Server, item: ScheduledPrompt, time: Date): Promise<void> {
  const { admissions, options: { signal } } = server;
  if (signal?.aborted) throw shuttingDown();
  const work: Promise<unknown>[] = [];
  const client: Client = {
    owner: item.owner,
    vars: undefined, // they are made when the session of the run is known
    leaving: signal ?? new AbortController().signal,
    outlive: (promise) => void work.push(promise),
    onLeave() {},
  };
  const scope = { server, client };
  const sent = { key: `\0${item.name} ${time.toISOString()}`, path: "schedule" }; // no header of a client contains NUL
  const endWait = admissions.admit(false);
  try {
    await startOnce(scope, admittedStart(scope, item, time), { sent, launch });
  } finally {
    endWait();
  }
  await Promise.all(work);
}

/** Returns the start of a time. Its content is the same in all processes, whatever prompts they make. */
function admittedStart(scope: StartScope, item: ScheduledPrompt, time: Date): AdmittedStart {
  const { session, busy = scope.server.options.nativeBusy } = item;
  let prompt: string | undefined;
  return {
    busy,
    content: [],
    session: session ?? crypto.randomUUID(),
    async input(key) {
      prompt ??= await promptOf(item, time);
      return await promptInput(scope, { session, create: true, input: { prompt } }, key);
    },
  };
}

async function promptOf({ prompt }: ScheduledPrompt, time: Date): Promise<string> {
  const text = typeof prompt === "function" ? await prompt({ time }) : prompt;
  if (typeof text !== "string") throw new TypeError(`its \`prompt\` has returned ${typeof text}; expected a text`);
  return text;
}

/** Launches a run, with the vars that the server makes for a run without a request. */
async function launch(
  { server: { runs, options }, client }: StartScope,
  input: LaunchInput,
): Promise<{ readonly run: LiveRun }> {
  const { recoveryVars } = options;
  const { session } = input;
  const { owner } = client;
  const run = recoveryVars && await runs.nextRun(session, client);
  const vars = run && await recoveryVars({ run, session, ...(owner !== undefined && { owner }) });
  return { run: await runs.launch(input, { ...client, vars }) };
}
