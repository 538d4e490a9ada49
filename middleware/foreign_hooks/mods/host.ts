/**
 * The calls of `$` that a server serves: state, a store, time, HTTP, models, the session and its tools. Others reject and name the call.
 *
 * @module
 */
import { composeSections } from "./instructions.ts";
import type { Data } from "./patterns.ts";
import type { Mod } from "./registration.ts";
import type { At, ModRun } from "./run.ts";
import { completeText, registerTool, sessionMessages } from "./session_view.ts";
import { objectOf, parseJson } from "../kit/answers.ts";
import { outermostRun } from "../kit/adapter.ts";
import { type Scope, state } from "../../../mod.ts";
import { cancellationOf, delay, readText } from "../../../src/core/kit.ts";

// The form of a call.

/** The call that is served, and the hook that made it. */
export interface HostCall {
  readonly run: ModRun;
  readonly mod: Mod;
  readonly at: At;
  readonly signal: AbortSignal;
}

/** One call of `$`. */
export interface HostMethod {
  /** Returns its arguments as the fields of its event. */
  readonly fields: (...args: never[]) => Data;
  /** Serves it, and returns its value. */
  readonly serve: (e: Data, call: HostCall) => unknown;
  /** True for an event of the engine, whose answer is the value itself. Default: false. */
  readonly isEvent?: boolean;
}

/** The calls by the names of their events. */
export type HostCalls = Readonly<
  Record<string, { readonly fields: (...args: unknown[]) => Data } & Omit<HostMethod, "fields">>
>;

const nothing = () => ({});
const whole = (e: unknown) => ({ ...objectOf(e) });
const named = (...names: readonly string[]) => (...args: readonly unknown[]) =>
  Object.fromEntries(names.map((name, index) => [name, args[index]]).filter(([, value]) => value !== undefined));

/** Creates a method without arguments. */
function read(serve: (call: HostCall) => unknown): HostMethod {
  return { fields: nothing, serve: (_, call) => serve(call) };
}

/** Creates a method that a server cannot serve. */
function refused(event: string, reason: string): HostMethod {
  return {
    fields: (...args: readonly unknown[]) => args.length === 1 ? whole(args[0]) : { args },
    serve() {
      throw new Error(`Cannot call $.${event}(): ${reason}`);
    },
  };
}

const noAccess = "this server gives mods no such access";

function allRefused(reason: string, ...events: readonly string[]): Record<string, HostMethod> {
  return Object.fromEntries(events.map((event) => [event, refused(event, reason)]));
}

// State of the session, and the store of a mod.

/** A value of `$.state`, and the number of times that it was set. */
interface Versioned {
  readonly value: unknown;
  readonly version: number;
}

const kept = state<Readonly<Record<string, Versioned>>>("mods.state", () => ({}), { lifetime: "session" });

function keyOf({ ref }: Data): string {
  const { plugin, key, id = null } = objectOf(ref);
  if (typeof key !== "string") throw new TypeError("Cannot use $.state: expected { plugin, key, id? }");
  return JSON.stringify([plugin ?? null, key, id]);
}

function readState(e: Data, ctx: Scope): { value?: unknown; version: number } {
  return kept.get(ctx)[keyOf(e)] ?? { version: 0 };
}

function writeState(e: Data, ctx: Scope): Data {
  const { version } = readState(e, ctx);
  const { ifVersion } = objectOf(e.options);
  if (ifVersion !== undefined && ifVersion !== version) return { isSet: false, version };
  const entry = { value: e.value ?? null, version: version + 1 };
  kept.update(ctx, (all) => ({ ...all, [keyOf(e)]: entry }));
  return { isSet: true, version: entry.version };
}

/** The characters of one mod's store. */
const maxStore = 4 * 1024 * 1024;

/** Reads the store of a mod and the tenant, and writes it if `change` returns new entries. */
async function useStore<T>(
  { run: { options: { store, locks } }, mod, at, signal }: HostCall,
  use: (entries: Record<string, unknown>) => { readonly value: T; readonly isChanged?: boolean },
): Promise<T> {
  const key = JSON.stringify([outermostRun(at.ctx.run).owner ?? null, mod.name]);
  return await locks.hold(key, cancellationOf(signal), async () => {
    const entries = Object.assign(Object.create(null), objectOf(parseJson(await store.get(key) ?? "{}")));
    const { value, isChanged } = use(entries);
    if (!isChanged) return value;
    const text = JSON.stringify(entries);
    if (text.length > maxStore) throw new RangeError(`Cannot set $.store: it has more than ${maxStore} characters`);
    await store.set(key, text);
    return value;
  });
}

/** Returns JSON as it is read again. Throws a `TypeError` for a value that JSON does not hold. */
function throughJson(value: unknown): unknown {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError("Cannot set $.store: expected JSON data");
  return JSON.parse(text);
}

const storage: Record<string, HostMethod> = {
  "state.get": { fields: named("ref"), serve: (e, { at }) => readState(e, at.ctx) },
  "state.set": { fields: named("ref", "value", "options"), serve: (e, { at }) => writeState(e, at.ctx) },
  "store.get": {
    fields: named("key"),
    serve: ({ key }, call) => useStore(call, (entries) => ({ value: entries[String(key)] })),
  },
  "store.set": {
    fields: named("key", "value"),
    serve: ({ key, value }, call) =>
      useStore(call, (entries) => {
        entries[String(key)] = throughJson(value);
        return { value: undefined, isChanged: true };
      }),
  },
  "store.delete": {
    fields: named("key"),
    serve: ({ key }, call) =>
      useStore(call, (entries) => {
        const isChanged = String(key) in entries;
        delete entries[String(key)];
        return { value: undefined, isChanged };
      }),
  },
  "store.keys": read((call) => useStore(call, (entries) => ({ value: Object.keys(entries) }))),
};

// Time and HTTP.

/** The bytes of a response that `$.http.fetch()` reads. */
const maxBody = 4 * 1024 * 1024;

async function fetchText({ url, init }: Data, { run: { options }, signal }: HostCall): Promise<Data> {
  const { hosts = [], fetch: send = fetch } = options;
  const { method, headers, body, auth, socketPath } = objectOf(init);
  const operation = `Cannot call $.http.fetch("${url}")`;
  if (auth !== undefined || socketPath !== undefined) {
    throw new TypeError(`${operation}: it takes no auth and no socket`);
  }
  const { protocol, host, hostname } = new URL(String(url));
  if (!/^https?:$/.test(protocol) || !(hosts.includes(host) || hosts.includes(hostname))) {
    throw new TypeError(`${operation}: its host is not among the hosts of mods()`);
  }
  const request = { method, headers, body, redirect: "manual", signal }; // another host may be behind a redirect
  const response = await send(String(url), request as RequestInit); // as the mod wrote it
  const text = await readText(response, { maxBytes: maxBody, operation });
  return { status: response.status, ok: response.ok, headers: Object.fromEntries(response.headers), text };
}

const outside: Record<string, HostMethod> = {
  "clock.now": read(({ at }) => at.ctx.run.now()),
  "clock.sleep": {
    fields: named("ms"),
    serve: ({ ms }, { signal }) => delay(Math.max(0, Number(ms) || 0), signal),
  },
  "clock.after": { fields: named("ms"), serve: () => undefined },
  "clock.every": { fields: named("ms"), serve: () => undefined },
  "http.fetch": { fields: named("url", "init"), serve: fetchText },
  "model.complete": { fields: whole, serve: completeText },
  "model.fork": { fields: whole, serve: (e, call) => completeText(e, call, call.run.messages) },
  "model.classify": {
    fields: named("text", "labels", "options"),
    async serve({ text, labels, options }, call) {
      const names = Array.isArray(labels) ? labels.map(String) : [];
      const system = `Classify the text. Answer with one of these labels and nothing else: ${names.join(", ")}`;
      const answer = await completeText({ ...objectOf(options), prompt: String(text), system }, call);
      const label = (typeof answer === "string" ? answer : String(objectOf(answer).text ?? "")).trim().toLowerCase();
      return names.find((word) => word.toLowerCase() === label);
    },
  },
};

// The session and its tools.

/** The version of Claude Code whose calls these are. */
const version = "2.1.293";

const session: Record<string, HostMethod> = {
  "session.id": read(({ at }) => at.ctx.run.session),
  "session.cwd": read(({ run: { options: { cwd = "/" } } }) => cwd),
  "session.root": read(({ run: { options: { cwd = "/", root = cwd } } }) => root),
  "session.model": read(({ run }) => run.model?.id ?? ""),
  "session.turns": read(({ run }) =>
    run.messages.filter((message) => message.role === "user" && message.from === undefined).length
  ),
  "session.messages": read(({ run }) => sessionMessages(run.messages).slice(-4_096)),
  "session.usage": read(({ at: { ctx: { run } } }) => ({
    context: { window: run.limits.context, ...(run.usage.input > 0 && { tokens: run.usage.input }) },
    rateLimits: [],
  })),
  "session.version": read(() => ({ version, base: version })),
  "session.surface": read(() => null),
  "session.surfaces": read(() => []),
  "session.repo": read(() => null),
  "session.authorize": read(() => null),
  "session.compact": refused("session.compact", "the engine compacts by itself; use compact() of the engine"),
  "tool.list": read(({ run }) =>
    run.tools.map(({ name, description }) => ({ name, description, mcp: name.startsWith("mcp__") }))
  ),
  "tool.register": {
    fields: whole,
    serve: ({ name, description, inputSchema }, { mod, at }) => ({
      tool: registerTool(at.ctx, mod, { name, description, inputSchema }),
    }),
  },
  "tool.call": refused("tool.call", "a server runs tools for the model only"),
  "tool.check": {
    fields: whole,
    isEvent: true,
    serve: ({ tool, input }, { run, at }) =>
      run.raise("tool.check", { tool, input }, () => Promise.resolve({ decision: "ask" }), at),
  },
  "agent.list": read(({ run }) => [...run.agents.values()]),
  ...allRefused("a server starts subagents for the model only", "agent.spawn", "agent.register"),
  "prompt.submit": {
    fields: (e: unknown) => ({ wait: false, ...(typeof e === "string" ? { text: e } : objectOf(e)) }),
    isEvent: true,
    async serve(e, { run, mod, at }) {
      const origin = { kind: "plugin", name: mod.name };
      const core = ({ text, context }: Data) => Promise.resolve({ text, ...(context !== undefined && { context }) });
      const answer = await run.raise("prompt.submit", { ...e, origin }, core, at);
      if (answer.drop === undefined) run.submitted.push({ mod: mod.name, text: String(answer.text) });
      return answer;
    },
  },
  "prompt.compose": {
    fields: whole,
    isEvent: true,
    serve: (e, { run, at }) => composeSections(run, at, e),
  },
  "prompt.read": read(() => ({ text: "", cursor: 0 })),
  "turn.abort": {
    fields: whole,
    serve({ turnId }, { mod, at: { ctx: { run } } }) {
      if (turnId === outermostRun(run).id) run.end(`The mod "${mod.name}" aborted the turn.`, { tree: true });
    },
  },
};

// The person: texts are notices, questions pause the run if the host allows it.

const asked = state<Readonly<Record<string, number>>>("mods.asked", () => ({}));

/** Returns the answer to a question that was asked before, or pauses the run with it. */
function askPerson({ question }: Data, { run: { options }, mod, at: { ctx } }: HostCall): string {
  const text = typeof question === "string" ? question : String(objectOf(question).question ?? "");
  if (!options.ask) {
    throw new Error("Cannot call $.ui.ask(): no person can answer; set the option ask to pause the run");
  }
  const key = JSON.stringify([mod.name, text]);
  const replies = ctx.run.answers.filter((answer) => answer.type === "reply" && answer.callId === undefined);
  const place = asked.get(ctx)[key];
  const reply = place === undefined ? undefined : replies[place];
  if (reply?.type === "reply") return reply.text;
  asked.update(ctx, (all) => ({ ...all, [key]: replies.length }));
  throw ctx.run.pause(text);
}

function showNotice(mod: Mod, { emit }: Scope, text: unknown): void {
  if (text !== undefined && text !== null && text !== "") emit({ type: "notice", text: `${mod.name}: ${text}` });
}

const display: Record<string, HostMethod> = {
  "ui.log": {
    fields: (text: unknown, options: unknown) => ({ text, to: objectOf(options).to ?? "transcript" }),
    serve({ text, to }, { run, mod, at }) {
      if (to === "debug") run.options.debug?.(mod.name, String(text));
      else showNotice(mod, at.ctx, text);
    },
  },
  "ui.toast": {
    fields: (text: unknown, options: unknown) => ({ text, ...objectOf(options) }),
    serve: ({ text }, { mod, at }) => showNotice(mod, at.ctx, text),
  },
  "ui.status": { fields: named("text"), serve: ({ text }, { mod, at }) => showNotice(mod, at.ctx, text) },
  "ui.notice": {
    fields: named("tool_use_id", "text"),
    serve: ({ text }, { mod, at }) => showNotice(mod, at.ctx, text),
  },
  "ui.ask": { fields: named("question", "options"), serve: askPerson },
  "ui.open": { fields: whole, serve: () => ({ isPlaced: false }) },
  "ui.panes": read(() => []),
  "ui.close": { fields: whole, serve: () => undefined },
  "ui.focus": { fields: whole, serve: () => ({ deny: "there is no screen" }) },
  "ui.scroll": { fields: whole, serve: () => ({ deny: "there is no screen" }) },
  "ui.invalidate": {
    fields: named("event"),
    serve: ({ event }, { run }) => run.forget(String(event)),
  },
  ...allRefused("there is no screen", "ui.blit", "ui.resolve"),
};

// The machine: ports that are off by default.

const maxFile = 4 * 1024 * 1024;

/** Creates the error of a file that does not exist, with the code that mods look for. */
function noFile({ path }: Data): Error {
  return new Error(`Cannot read "${path}": ENOENT, no such file`);
}

function pathOf({ path }: Data, { run: { options: { cwd = "/" } } }: HostCall): string {
  const text = String(path);
  const inside = text.startsWith(cwd) ? text.slice(cwd.length) : text;
  return inside.replace(/^(\.?\/)+/, "") || ".";
}

const machine: Record<string, HostMethod> = {
  "fs.read": {
    fields: (path: unknown, options: unknown) => ({ path, as: objectOf(options).as ?? "text" }),
    async serve(e, call) {
      const file = await call.run.options.files?.read(pathOf(e, call));
      if (!file) throw noFile(e);
      if (file.bytes.length > maxFile) {
        throw new RangeError(`Cannot call $.fs.read(): '${e.path}' has more than ${maxFile} bytes`);
      }
      if (e.as !== "bytes") return new TextDecoder().decode(file.bytes);
      return { base64: btoa(Array.from(file.bytes, (byte) => String.fromCharCode(byte)).join("")) };
    },
  },
  "fs.write": {
    fields: named("path", "text"),
    async serve(e, call) {
      const { files } = call.run.options;
      if (!files) throw new Error(`Cannot call $.fs.write(): ${noAccess}`);
      const path = pathOf(e, call);
      const before = await files.read(path);
      const written = await files.write(path, new TextEncoder().encode(String(e.text)), before?.version);
      if (written === undefined) throw new Error(`Cannot call $.fs.write(): another process has changed '${e.path}'`);
    },
  },
  "fs.list": {
    fields: (path: unknown = ".") => ({ path }),
    async serve(e, call) {
      const entries = await Array.fromAsync(call.run.options.files?.list(pathOf(e, call)) ?? []);
      const found = entries.map(({ name, type }) => ({
        name,
        kind: type === "file" ? "file" : "dir",
        size: 0,
        isLink: false,
      }));
      return found.toSorted((a, b) => a.name < b.name ? -1 : 1);
    },
  },
  "fs.exists": {
    fields: named("path"),
    serve: async (e, call) => await call.run.options.files?.stat(pathOf(e, call)) !== undefined,
  },
  "fs.stat": {
    fields: (path: unknown, options: unknown) => ({ path, resolve: objectOf(options).resolve === true }),
    async serve(e, call) {
      const stat = await call.run.options.files?.stat(pathOf(e, call));
      if (!stat) throw noFile(e);
      const size = stat.type === "file" ? stat.size : 0;
      return { kind: stat.type === "file" ? "file" : "dir", size, mtimeMs: 0, isLink: false };
    },
  },
  "fs.ancestors": { fields: whole, serve: () => [] },
  "env.get": {
    fields: named("name"),
    serve: ({ name }, { run: { options: { env = {} } } }) =>
      Object.hasOwn(env, String(name)) ? env[String(name)] : undefined,
  },
  "settings.read": { fields: whole, serve: (_, { run: { options: { settings = {} } } }) => settings },
  "command.register": { fields: whole, serve: ({ name }) => ({ command: name }) },
  "command.list": read(() => []),
  "config.list": read(() => []),
  "config.set": { fields: whole, serve: () => ({ deny: "there is no menu of settings" }), isEvent: true },
  ...allRefused(noAccess, "env.set", "process.run", "process.spawn", "mcp.call", "audio.play", "audio.speak"),
  ...allRefused("no person types", "command.run", "prompt.fill", "prompt.suggest"),
  ...Object.fromEntries(
    ["log", "event", "count", "record"].map((method) => [
      `telemetry.${method}`,
      { fields: (...args: readonly unknown[]) => ({ args }), serve: () => undefined },
    ]),
  ),
};

/** The calls of `$` that a server serves. */
export const hostCalls: HostCalls = { ...storage, ...outside, ...session, ...display, ...machine } as HostCalls; // mods pass any arguments
