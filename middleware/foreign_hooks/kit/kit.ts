/**
 * The parts that the adapters of all systems share: the answers of hooks, their deadlines and warnings, groups and results of calls, and facts about a run.
 *
 * @module
 */
import * as z from "zod";
import {
  allow,
  type Approval,
  type ContentPart,
  type Middleware,
  type Point,
  type Run,
  type Scope,
  textOf,
  type ToolContext,
  type ToolResult,
} from "../../../mod.ts";
import {
  anySignal,
  cancellationOf,
  canonicalJson,
  describeIssues,
  jsonThatRuns,
  points,
  startTimer,
  withGracePeriod,
} from "../../../src/core/kit.ts";

// Reading the answers of hooks. Zod validates every field on its own, so an invalid field does not affect the others.

/** The schemas of the fields of an answer. `$ZodType` is the core of every schema: the compiler compares fewer members with it than with `ZodType`. */
export type Shape = Readonly<Record<string, z.core.$ZodType>>;

/** The valid fields of an answer. */
export type Fields<S extends Shape> = { readonly [K in keyof S]?: z.output<S[K]> };

/**
 * Returns the fields of `shape` that are present and valid; `onInvalid` receives one text per invalid field. Null counts as absent unless the schema accepts
 * it.
 */
export function readFields<S extends Shape>(
  shape: S,
  given: Readonly<Record<string, unknown>>,
  onInvalid: (field: string, problem: string) => void,
): Fields<S> {
  const read: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(shape)) {
    const value = given[name];
    if (value === undefined) continue;
    const parsed = z.safeParse(schema, value);
    if (parsed.success) read[name] = parsed.data;
    else if (value !== null) onInvalid(name, describeIssues(parsed.error.issues));
  }
  return read as Fields<S>; // each field was parsed by its own schema
}

/** Returns a text that names the members of an answer that its system does not know; undefined if there are none. Null counts as absent. */
export function unknownMembers(
  given: unknown,
  known: readonly string[],
  fold: (name: string) => string = (name) => name,
): string | undefined {
  const names = Object.entries(objectOf(given)).filter(([name, value]) =>
    value !== undefined && value !== null && !known.includes(fold(name))
  ).map(([name]) => name.slice(0, 64));
  const more = names.length > 10 ? ` and ${names.length - 10} more` : "";
  return names.length === 0 ? undefined : `unknown members: ${names.slice(0, 10).join(", ")}${more}`;
}

/** Throws a `TypeError` if `given`, the first argument of a factory, has an option and no member of its own: it was to be the second argument. */
export function expectNoOption(
  subject: string,
  given: object,
  own: readonly string[],
  options: readonly string[],
): void {
  const misplaced = Object.keys(given).find((name) => options.includes(name) && !own.includes(name));
  if (misplaced === undefined || own.some((name) => name in given)) return;
  throw new TypeError(`${subject}: "${misplaced}" is an option; expected it in the second argument`);
}

/** Whether a value is an object with fields, not an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a value if it is an object, otherwise an empty object. */
export function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

/** Accepts one of `words`, in upper or lower case. */
export function word<const T extends readonly string[]>(...words: T): z.core.$ZodType<T[number]> {
  return z.preprocess((given) => typeof given === "string" ? given.trim().toLowerCase() : given, z.enum(words));
}

/** Accepts what `schema` accepts, and null or nothing as undefined. */
export function maybe<S extends z.core.$ZodType>(schema: S): z.core.$ZodType<z.output<S> | undefined> {
  return z.pipe(z.nullish(schema), z.transform((given) => given ?? undefined));
}

/** Parses JSON; returns undefined for invalid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Joins the texts that are not empty, one per line; undefined if all are empty. */
export function joinLines(texts: readonly (string | undefined)[]): string | undefined {
  return texts.filter((text) => text).join("\n") || undefined;
}

// Bodies of responses of hooks behind a URL.

/** Reads the text of a response. Throws a `RangeError` if it has more than `most` bytes. */
export async function readBody({ body }: Response, most: number): Promise<string> {
  const decoder = new TextDecoder();
  let size = 0;
  let text = "";
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > most) throw new RangeError(`Cannot read the answer of the hook: it has more than ${most} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

// Groups of calls, as the home systems run them.

/** Returns `groups` for a middleware: each call runs alone, with its hooks around it, unless its tool says that it may overlap with others. */
export function separateCalls(): Required<Pick<Middleware, "groups">> {
  return { groups: ({ parallel }) => parallel ? "parallel" : "alone" };
}

// The points of the lifecycle that an adapter uses.

/** For each point, the names of the hooks that need it. */
export type Needs<Name extends string> = Readonly<Partial<Record<Point, readonly Name[]>>>;

/** Returns `middleware` without the hooks at points that no configured hook needs. */
export function atNeededPoints<Name extends string>(
  { name, inherit, ...hooks }: Middleware & { readonly name: string; readonly inherit: boolean },
  needs: Needs<Name>,
  has: (name: Name) => boolean,
): Middleware {
  const used = points.filter((point) => needs[point]?.some(has));
  return { name, inherit, ...Object.fromEntries(used.map((point) => [point, hooks[point]])) };
}

// A bounded memory.

/** The most entries of a map. */
const most = 1_000;

/** Returns the value of a key and makes it the newest entry. Beyond 1,000 entries the oldest is forgotten, which `onForget` receives. */
export function remember<T>(
  all: Map<string, T>,
  key: string,
  create: () => T,
  onForget: (value: T) => void = () => {},
): T {
  const value = all.get(key) ?? create();
  all.delete(key);
  all.set(key, value);
  const [oldest] = all;
  if (all.size > most && oldest) {
    all.delete(oldest[0]);
    onForget(oldest[1]);
  }
  return value;
}

// Warnings about foreign hooks.

/** The place and the cause of a hook's failure. */
export interface HookFailure {
  readonly middleware: string;
  readonly point: Point;
  readonly message: string;
  /** The error that was thrown. It goes to `onError`; clients receive only its id. */
  readonly error?: unknown;
}

/** Emits a warning that a hook failed or that a part of its answer is ignored. */
export function warnFailed({ run, emit }: Scope, { error, ...failure }: HookFailure): void {
  const id = error === undefined ? undefined : run.report(error);
  emit({ type: "warning", code: "hook.failed", ...failure, ...(id !== undefined && { error: id }) });
}

/** Emits a warning that a hook does not run. */
export function warnSkipped({ emit }: Scope, middleware: string, message: string, point: Point = "session"): void {
  emit({ type: "warning", code: "hook.skipped", message, middleware, point });
}

/** Adds warnings about the hooks that never run to a middleware. They are emitted when a run begins. */
export function warnSilent(middleware: Middleware, silent: readonly string[]): Middleware {
  if (silent.length === 0) return middleware;
  const { name = "hooks" } = middleware;
  return {
    ...middleware,
    async session(ctx, next) {
      for (const message of ctx.run.parent || ctx.resumed ? [] : silent) warnSkipped(ctx, name, message);
      return await (middleware.session ? middleware.session(ctx, next) : next());
    },
  };
}

/** Returns the message of an error, as thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

// Deadlines of hooks.

/**
 * Calls `work` with a signal that aborts with `signal` or after `ms` milliseconds. After an abort, `work` has `grace` milliseconds (default 0) to settle;
 * then its result is dropped. Rejects with the error of `work`, or with the reason of the abort.
 */
export async function callWithin<T>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => T | Promise<T>,
  grace = 0,
): Promise<T> {
  signal.throwIfAborted();
  const late = new AbortController();
  const own = anySignal([signal, late.signal]);
  const call = async () => await work(own);
  const timer = startTimer(() => late.abort(lateAfter(ms)), ms);
  try {
    const result = await withGracePeriod(call(), cancellationOf(own), grace, () => {});
    own.throwIfAborted();
    return result;
  } catch (error) {
    throw own.aborted ? own.reason : error;
  } finally {
    clearTimeout(timer);
  }
}

/** Creates the error for work that took longer than `ms` milliseconds. */
export function lateAfter(ms: number): DOMException {
  return new DOMException(`Not done after ${ms} ms`, "TimeoutError");
}

/** Whether an error says that a deadline passed. */
export function isLate(error: unknown): boolean {
  return error instanceof DOMException && error.name === "TimeoutError";
}

// Calls of tools: their results, their inputs, and their errors.

/** Returns the result with more texts for the model, in a message after the results. */
export function addContext(result: ToolResult, texts: readonly (string | undefined)[]): ToolResult {
  const context = texts.flatMap((text) => text ? [text] : []);
  return context.length === 0 ? result : { ...result, context: [...result.context ?? [], ...context] };
}

/** Returns a part of text. */
export function textPart(text: string): ContentPart {
  return { type: "text", text };
}

/** Returns the parts with their text replaced. */
export function replaceText(parts: readonly ContentPart[], text: string): readonly ContentPart[] {
  return [textPart(text), ...parts.filter(({ type }) => type !== "text")];
}

/** Whether two values are the same JSON. */
export function isSameJson(a: unknown, b: unknown): boolean {
  return a === b || canonicalJson(a) === canonicalJson(b);
}

/** Applies an "allow" of a foreign hook: it answers a question of the inner layers, and changes neither an allow nor a deny. */
export function allowAsk(inner: Approval): Approval {
  return inner.type === "ask" ? allow() : inner;
}

/** Returns an input as its tool would run with it: after the schema. An input that the schema rejects stays as it is. */
export async function inputThatRuns(ctx: Pick<ToolContext, "tool" | "input">): Promise<unknown> {
  const found = await jsonThatRuns(ctx);
  return found ? found.json : ctx.input;
}

/** Returns the message of a failed call as it was thrown. Returns the text of the result if nothing was thrown, or the process has died since. */
export function errorOf(result: ToolResult): string {
  return result.error !== undefined && result.status !== "ok" ? messageOf(result.error) : textOf(result);
}

// Facts about a run that hooks of every system receive.

/** Returns the run that has no parent. */
export function outermostRun(run: Run): Run {
  return run.parent ? outermostRun(run.parent) : run;
}

/** Returns the file that `transcript()` writes for the run; undefined without one. */
export function transcriptFile({ state }: Run): string | undefined {
  const path = state.get("transcript.path");
  return typeof path === "string" && path !== "" ? path : undefined;
}

/** Returns the working directory of the run, as `workspace()` keeps it, as a path beneath `root`. */
export function workingDirectory({ state }: Run, root: string): string {
  const place = state.get("workspace");
  const inside = typeof place === "object" && place !== null && "cwd" in place ? String(place.cwd) : ".";
  return absolutePath(root, inside);
}

/** Turns a path of the workspace into an absolute path beneath `root`. */
export function absolutePath(root: string, path: string): string {
  if (path.startsWith("/")) return path;
  const inside = path.replace(/^\.(\/|$)/, "");
  return inside === "" ? root : `${root.replace(/\/$/, "")}/${inside}`;
}

/** Splits `mcp__server__tool`, the name of a tool of an MCP server; undefined for every other name. */
export function mcpToolOf(name: string): { readonly serverName: string; readonly toolName: string } | undefined {
  const [, serverName, toolName] = name.match(/^mcp__(.+?)__(.+)$/) ?? [];
  return serverName === undefined || toolName === undefined ? undefined : { serverName, toolName };
}
