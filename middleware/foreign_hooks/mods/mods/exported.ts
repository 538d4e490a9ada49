/**
 * Exports middleware as a mod of Claude Code: writes the source of its module, and runs its hooks there.
 *
 * @module
 */
import { objectOf } from "../../kit/answers.ts";
import { isSameJson, messageOf } from "../../kit/calls.ts";
import {
  type Approval,
  type Call,
  defaultLimits,
  denied,
  End,
  type Event,
  failed,
  type Middleware,
  noUsage,
  type Point,
  type Run,
  type RunResult,
  type Scope,
  text,
  textOf,
  tool,
  type ToolResult,
  user,
  type UserMessage,
} from "../../../../mod.ts";
import { points, schemaOf } from "../../../../src/core/kit.ts";

// The source of the module.

/** The middleware to export, and the code that makes it in the module. */
export interface ExportOptions {
  /** The middleware, whose points decide which events the module hooks. */
  readonly middleware: Middleware;
  /** The imports of the module, such as `import { permissions } from "@jizai/jizai/middleware/permissions";`. */
  readonly imports: string;
  /** The expression that makes the middleware, such as `permissions({ deny: ["Bash"] })`. */
  readonly expression: string;
  /** Points whose hooks are left out, such as `abort` of `audit()`. Default: none. */
  readonly leaveOut?: readonly Point[] | undefined;
  /** Whether calls and prompts are refused if the middleware fails. Default: true if it has a hook at `approval` or `input`. */
  readonly guard?: boolean | undefined;
}

/** The events of each point that can be exported. */
const events = {
  tool: ["tool.call"],
  approval: ["tool.check"],
  input: ["prompt.submit"],
  prompt: ["prompt.submit"],
  session: ["session.start", "prompt.context", "session.end"],
  stop: ["classic.Stop"],
} as const;

/** The reasons why the others cannot. */
const refusals: Readonly<Record<string, string>> = {
  turn: "a mod sees no turn with its calls",
  execute: "a mod sees no execution without its approval",
  error: "a mod sees no failure",
  abort: "a mod sees no cleanup",
  model: "a mod cannot change the messages of a request",
  compact: "its messages are not ours",
  subagent: "its answer is not known when it starts",
};

/** The functions of `exportedHooks()`, by event. */
const functions = {
  "tool.call": "call",
  "tool.check": "check",
  "prompt.submit": "submit",
  "session.start": "start",
  "prompt.context": "context",
  "session.end": "end",
  "classic.Stop": "stop",
} as const;

/** The handlers of a guard: a failure refuses, unless what it guards has happened. */
const handlers: Readonly<Record<string, string>> = {
  "tool.call": `.catch(($, e, next) => next.called ? next(e) : { deny: "A guard failed." })`,
  "prompt.submit": `.catch(($, e, next) => next.called ? next(e) : { drop: "A guard failed." })`,
  "tool.check": `.catch(() => ({ decision: "deny", reason: "A guard failed." }))`,
};

/**
 * Returns the source of a module that runs a middleware as a mod of Claude Code: the hooks are spelled out, as Claude Code requires. Bundle it, for example
 * with esbuild, into the `hooks/register.js` of a plugin. A guard belongs into the tier `prepend`, where no other mod loosens what it decides.
 *
 * Hooks at `tool`, `approval`, `input`, `prompt`, `session` and `stop` (with a text) are exported: for `audit()`, leave out `abort`. Their `ctx.run` has state
 * for the life of the process, no usage, and no questions. A hook at `session` may add context, and change no settings. Throws a `TypeError` with the reason for a middleware that has hooks at other points, or tools.
 *
 * ```ts
 * import { exportMod } from "@jizai/jizai/middleware/mods/exported";
 * import { permissions } from "@jizai/jizai/middleware/permissions";
 * import { assertEquals } from "@std/assert";
 *
 * const source = exportMod({
 *   middleware: permissions({ deny: ["Bash"] }),
 *   imports: `import { permissions } from "@jizai/jizai/middleware/permissions";`,
 *   expression: `permissions({ deny: ["Bash"] })`,
 * });
 * assertEquals(source.includes(`on("tool.check", `), true);
 * ```
 */
export function exportMod({ middleware, imports, expression, leaveOut = [], guard }: ExportOptions): string {
  const { name = "a middleware", approval, input, tools = [] } = middleware;
  const used = points.filter((point) => middleware[point] && !leaveOut.includes(point));
  for (const point of used) {
    const reason = refusals[point];
    if (reason !== undefined) {
      throw new TypeError(
        `Cannot export "${name}": it has a hook at ${point}, and ${reason}; leave it out with \`leaveOut\``,
      );
    }
  }
  if (tools.length > 0) throw new TypeError(`Cannot export "${name}": it has tools, and a mod registers its own`);
  if (used.length === 0) throw new TypeError(`Cannot export "${name}": expected a hook`);
  const isGuard = guard ?? (approval !== undefined || input !== undefined);
  const names = new Set(
    Object.entries(events).flatMap(([point, events]) => used.some((each) => each === point) ? events : []),
  );
  const lines = [...names].map((event) =>
    `  on("${event}", ($, e, next) => hooks.${functions[event]}($, e, next))${isGuard ? handlers[event] ?? "" : ""};`
  );
  return [
    `import { exportedHooks } from "@jizai/jizai/middleware/mods/exported";`,
    imports,
    "",
    `const hooks = exportedHooks(${expression});`,
    "",
    "export function register(on) {",
    ...lines,
    "}",
    "",
  ].join("\n");
}

// The hooks in the module.

/** `$`, as far as the exported hooks call it. */
export interface HomeEngine {
  /** The texts for the person. */
  readonly ui: {
    /** Shows a line. */
    log(text: string): unknown;
  };
}

/** The fields of an event, or an answer. */
export type Fields = Readonly<Record<string, unknown>>;
/** `next`, as Claude Code passes it. */
export type HomeNext = ((e: Fields) => Promise<Fields>) & { readonly signal: AbortSignal };
/** The names of the hooks. */
export type HookName = "call" | "check" | "submit" | "start" | "context" | "end" | "stop";
/** A hook of a mod. */
export type HomeHook = ($: HomeEngine, e: Fields, next: HomeNext) => Promise<Fields>;

/** Returns the hooks of a middleware for the events of Claude Code. The module that `exportMod()` writes calls it. */
export function exportedHooks(
  middleware: Middleware,
): Readonly<Record<HookName, HomeHook>> {
  const run = processRun();
  /** Ends the hook at `session`, which is open from the start of the session to its end. */
  const ended = Promise.withResolvers<RunResult>();
  let session: Promise<RunResult> | undefined;
  let texts: readonly string[] = [];

  function scope($: HomeEngine, next: HomeNext): Scope {
    const emit = (event: Event) => {
      if (event.type === "notice") $.ui.log(event.text);
      else if (event.type === "warning") $.ui.log(event.message);
    };
    return { run, signal: next.signal, emit, vars: undefined };
  }

  return {
    async call($, e, next) {
      const { tool: name, tool_use_id: id, agentId: _, consent: __, ...input } = e;
      const call: Call = { id: String(id), name: String(name), input };
      let seen: { readonly home: Fields; readonly result: ToolResult } | undefined;
      const fields = { call, tool: toolOf(call.name), name: call.name, input, batchId: call.id, index: 0, turn: 1 };
      const result = await ending(
        async () =>
          await middleware.tool?.({ ...scope($, next), ...fields, resumed: false, edited: false }, async (change) => {
            const changed = change?.input === undefined ? e : { ...e, ...objectOf(change.input) };
            const home = await next(changed);
            seen = { home, result: resultOf(home) };
            return seen.result;
          }),
        denied,
      );
      if (!result) return await next(e);
      return result === seen?.result ? seen.home : homeResult(result);
    },
    async check($, e, next) {
      const { tool: name, input, tool_use_id: id } = e;
      const call: Call = { id: String(id), name: String(name), input };
      const fields = { call, tool: toolOf(call.name), name: call.name, input, parsed: input, unparsed: input, turn: 1 };
      const approval = await ending(
        async () =>
          await middleware.approval?.({ ...scope($, next), ...fields }, async () => approvalOf(await next(e))),
        (reason): Approval => ({ type: "deny", reason }),
      );
      return approval ? verdictOf(approval, input) : await next(e);
    },
    async submit($, e, next) {
      const prompt = user(String(e.text));
      const accepted = await review(middleware, scope($, next), prompt);
      if ("drop" in accepted) return accepted;
      const context = [...Array.isArray(e.context) ? e.context : [], ...accepted.context];
      return await next({ ...e, text: textOf(accepted.message), ...(context.length > 0 && { context }) });
    },
    async start($, e, next) {
      const settings = { model: homeModel, instructions: "", tools: [], limits: defaultLimits };
      const base = { ...scope($, next), signal: new AbortController().signal }; // it lives as long as the session
      const ctx = { ...base, session: run.session, source: "new", resumed: false, settings, context: [] } as const;
      const opened = Promise.withResolvers<void>();
      session = middleware.session?.(ctx, (change) => {
        texts = change?.context ?? [];
        opened.resolve();
        return ended.promise;
      });
      await Promise.any([opened.promise, session]); // a hook that refuses the session never begins it
      return await next(e);
    },
    async context(_$, e, next) {
      const blocks = Array.isArray(e.blocks) ? e.blocks : [];
      const added = texts.map((text, index) => ({ name: `context ${index + 1}`, text }));
      return await next({ ...e, blocks: [...blocks, ...added] });
    },
    async end(_$, e, next) {
      const result = { status: "done", run: run.id, session: run.session, text: "" } as const;
      ended.resolve({ ...result, questions: [], usage: noUsage, messages: [] });
      await session;
      return await next(e);
    },
    async stop($, e, next) {
      const message = {
        role: "assistant",
        parts: [{ type: "text", text: String(e.last_assistant_message ?? "") }],
      } as const;
      const continuations = e.stop_hook_active === true ? 1 : 0;
      const ctx = { ...scope($, next), message, transcript: [], continuations, limit: 8, resumed: false };
      const decision = await middleware.stop?.(ctx, () => Promise.resolve({ type: "finish" }));
      if (decision?.type === "continue") {
        return { block: decision.messages.map((message) => textOf(message)).join("\n") };
      }
      return await next(e);
    },
  };
}

/** Runs a hook. A run that it ends is refused, since a mod ends none. */
async function ending<T>(work: () => Promise<T>, refusal: (reason: string) => NonNullable<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof End) return refusal(error.reason);
    throw error;
  }
}

/** Runs the hooks at `input` and `prompt`. */
async function review(
  { input, prompt }: Middleware,
  scope: Scope,
  message: UserMessage,
): Promise<{ readonly drop: string } | { readonly message: UserMessage; readonly context: readonly string[] }> {
  let accepted: { readonly message: UserMessage; readonly context: readonly string[] } = { message, context: [] };
  const reviewed = await input?.({ ...scope, source: "prompt", messages: [message], context: [] }, (change) => {
    const [changed = message] = change?.messages ?? [];
    const first = changed as UserMessage; // a prompt is one message of the person
    accepted = { message: first, context: change?.context ?? [] };
    return Promise.resolve({ status: "accepted", messages: [changed] });
  });
  if (reviewed?.status === "cancelled") return { drop: reviewed.reason ?? "It is not allowed." };
  const { message: reviewedPrompt, context } = accepted;
  const answer = await prompt?.(
    { ...scope, prompt: reviewedPrompt, transcript: [], context, resumed: false },
    (change) => {
      accepted = { message: change?.prompt ?? reviewedPrompt, context: change?.context ?? context };
      return Promise.resolve({ status: "done", text: "" });
    },
  );
  return answer?.status === "cancelled" ? { drop: answer.reason ?? "It is not allowed." } : accepted;
}

// Values in both forms.

function resultOf({ deny, result, text: shown, isError }: Fields): ToolResult {
  if (deny !== undefined) return denied(String(deny));
  const content = String(shown ?? (typeof result === "string" ? result : JSON.stringify(result)));
  return isError === true ? failed(content) : text(content);
}

function homeResult(result: ToolResult): Fields {
  const content = textOf(result);
  if (result.status === "denied" || result.status === "skipped") return { deny: content };
  const context = result.context && result.context.length > 0 && { context: result.context };
  return { result: content, ...(result.status !== "ok" && { isError: true }), ...context };
}

function approvalOf({ decision, reason }: Fields): Approval {
  if (decision === "deny") return { type: "deny", reason: String(reason ?? "It is not allowed.") };
  return decision === "ask" ? { type: "ask", questions: [String(reason ?? "Run it?")] } : { type: "allow" };
}

/** Returns the decision. A guard that changes the input denies, since a mod decides about the call as it is. */
function verdictOf(approval: Approval, input: unknown): Fields {
  if (approval.type === "deny") return { decision: "deny", reason: approval.reason };
  if (approval.type === "ask") return { decision: "ask", reason: approval.questions.join("\n") };
  const isChanged = approval.input !== undefined && !isSameJson(approval.input, input);
  return isChanged ? { decision: "deny", reason: "A guard changed the input." } : { decision: "allow" };
}

const homeModel = {
  id: "claude",
  stream(): never {
    throw new TypeError("Cannot ask the model: a mod sends no requests");
  },
};

function toolOf(name: string) {
  return tool({ name, description: name, input: schemaOf<unknown>({ type: "object" }), execute: () => "" });
}

/** Returns the run of a process: its state lives as long as the module. */
function processRun(): Run {
  const id = crypto.randomUUID();
  return {
    ...{ id, session: id, owner: undefined, startedAt: Date.now(), path: [], answers: [], agent: "claude" },
    ...{ parent: undefined, call: undefined, state: new Map(), sessionState: new Map(), usage: noUsage },
    ...{ used: { turns: 0, calls: 0, continuations: 0 }, limits: defaultLimits, finishing: false },
    now: () => Date.now(),
    report: (error) => messageOf(error),
    end: (reason, options) => new End(reason, options),
    pause(question) {
      throw new TypeError(`Cannot pause with "${question}": a mod asks no person`);
    },
  };
}
