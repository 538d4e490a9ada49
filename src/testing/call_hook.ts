/**
 * Tests of one hook alone.
 *
 * @module
 */
import { tool } from "../core/tool.ts";
import { End, Pause } from "../core/interrupt.ts";
import type { Hook, Next } from "../core/onion.ts";
import type {
  AbortContext,
  ApprovalContext,
  CompactContext,
  ErrorContext,
  ExecuteContext,
  InputContext,
  ModelContext,
  ModelResponse,
  PromptContext,
  SessionContext,
  StopContext,
  SubagentContext,
  ToolContext,
  TurnContext,
} from "../core/points.ts";
import type { Run } from "../core/scope.ts";
import { defaultLimits } from "../core/limits.ts";
import { ResponseAccumulator } from "../core/response.ts";
import type { ModelRequest } from "../model/model.ts";
import { scripted } from "../model/scripted.ts";
import { noUsage, user } from "../protocol/message.ts";
import { freeze } from "../core/strict.ts";
import { anyInput } from "./middleware/scenarios.ts";

/** The context of every point. */
export interface HookContexts<V> {
  /** The context of `session`. */
  readonly session: SessionContext<V>;
  /** The context of `input`. */
  readonly input: InputContext<V>;
  /** The context of `prompt`. */
  readonly prompt: PromptContext<V>;
  /** The context of `turn`. */
  readonly turn: TurnContext<V>;
  /** The context of `model`. */
  readonly model: ModelContext<V>;
  /** The context of `tool`. */
  readonly tool: ToolContext<V>;
  /** The context of `approval`. */
  readonly approval: ApprovalContext<V>;
  /** The context of `execute`. */
  readonly execute: ExecuteContext<V>;
  /** The context of `stop`. */
  readonly stop: StopContext<V>;
  /** The context of `compact`. */
  readonly compact: CompactContext<V>;
  /** The context of `subagent`. */
  readonly subagent: SubagentContext<V>;
  /** The context of `error`. */
  readonly error: ErrorContext<V>;
  /** The context of `abort`. */
  readonly abort: AbortContext<V>;
}

/** The fields of a context that matter for a test. The others get simple values. */
export type StubFields<P extends keyof HookContexts<V>, V> = Partial<Omit<HookContexts<V>[P], "run">> & {
  /** Fields of the run. */
  readonly run?: Partial<Run>;
};

/**
 * Returns a context of a point for `callHook()`. A `name` and an `input` also set the call of the model.
 *
 * ```ts
 * import { stubContext } from "@jizai/jizai/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const { call, turn } = stubContext("tool", { name: "weather", input: { city: "Kyoto" } });
 * assertEquals([call, turn], [{ id: "call_1", name: "weather", input: { city: "Kyoto" } }, 1]);
 * ```
 */
export function stubContext<P extends keyof HookContexts<V>, V = unknown>(
  point: P,
  fields: StubFields<P, V> = {},
): HookContexts<V>[P] {
  const { run, ...given } = fields;
  const scope = { run: stubRun(run), signal: new AbortController().signal, emit() {}, vars: undefined };
  const all: object = { // only the fields of a call are read
    ...scope,
    ...defaultsOf(given as NamedCall)[point],
    ...given,
  };
  return all as HookContexts<V>[P]; // the defaults have all fields of the point
}

/**
 * Calls one hook with a context, and returns its answer. `next` stands for the inner layers. The context is frozen. Throws a `TypeError` if there is no hook,
 * and an `Error` if the hook returns without awaiting `next()`.
 *
 * ```ts
 * import { mapText, type Middleware, text, textOf } from "@jizai/jizai";
 * import { callHook, stubContext } from "@jizai/jizai/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const polite: Middleware = {
 *   name: "polite",
 *   tool: async (_ctx, next) => mapText(await next({ input: { city: "Nara" } }), (text) => `${text}, please`),
 * };
 *
 * let passed: unknown;
 * const result = await callHook(polite.tool, stubContext("tool", { name: "weather" }), async (change) => {
 *   passed = change?.input;
 *   return text("Sunny");
 * });
 * assertEquals([textOf(result), passed], ["Sunny, please", { city: "Nara" }]);
 * ```
 */
export async function callHook<C, D, R>(
  hook: Hook<C, D, R> | undefined,
  ctx: C,
  next: Next<NoInfer<D>, NoInfer<R>>,
): Promise<R> {
  if (!hook) throw new TypeError("Cannot call the hook: the middleware has none at this point");
  let open = 0;
  const answer = await hook(freeze(ctx), async (change) => {
    open++;
    try {
      return await next(change);
    } finally {
      open--;
    }
  });
  if (open > 0) throw new Error("Cannot accept the answer of the hook: it did not await next()");
  return answer;
}

/** Returns a run with simple values. */
function stubRun(fields: Partial<Run> = {}): Run {
  return {
    id: "run",
    session: "session",
    owner: undefined,
    startedAt: 0,
    now: () => 0,
    path: [],
    answers: [],
    agent: "agent",
    parent: undefined,
    call: undefined,
    state: new Map(),
    sessionState: new Map(),
    usage: noUsage,
    used: { turns: 0, calls: 0, continuations: 0 },
    limits: defaultLimits,
    finishing: false,
    report: () => "error",
    end: (reason, options) => new End(reason, options),
    pause: (question, options) => new Pause([{ questions: [question], ...options }]),
    ...fields,
  };
}

/** The fields from which the call of a context is made. */
interface NamedCall {
  readonly name?: string;
  readonly input?: unknown;
}

/** Asks a model without hooks. */
async function askModel(
  { model = scripted(), instructions = "", messages = [], tools = [], options = {} }: Partial<ModelRequest>,
  signal: AbortSignal = new AbortController().signal,
): Promise<ModelResponse> {
  const unread = { announce() {}, warn() {} };
  const answer = new ResponseAccumulator({ turn: 1, emit() {}, events: unread, uniqueId: (id) => id });
  for await (const events of model.stream({ model, instructions, messages, tools, options }, { signal })) {
    for (const event of events) answer.add(event);
  }
  const { finish = "other", usage } = answer;
  return { parts: answer.end(), finish, usage, model: model.id, attempts: 1 };
}

/** Returns the default fields of each point. */
function defaultsOf({ name = "echo", input = {} }: NamedCall) {
  const call = { id: "call_1", name, input };
  const transcript = [user("Hello")];
  const model = scripted();
  const echo = tool({
    name: "echo",
    description: "Answers with its input",
    input: anyInput,
    execute: (input) => JSON.stringify(input),
  });
  const settings = { model, instructions: "", tools: [], limits: defaultLimits };
  return {
    session: { session: "session", source: "new", resumed: false, settings, context: [] },
    input: { source: "prompt", messages: transcript, context: [] },
    prompt: { prompt: user("Hello"), transcript: [], context: [], resumed: false },
    turn: { index: 1, transcript, context: [], resumed: false },
    model: {
      request: { model, instructions: "", messages: transcript, tools: [], options: {} },
      attempt: 1,
      turn: 1,
      purpose: "turn",
    },
    tool: { call, tool: echo, name, input, batchId: "run:1", index: 0, turn: 1, resumed: false, edited: false },
    approval: { call, tool: echo, name, input, parsed: input, unparsed: input, turn: 1 },
    execute: {
      call,
      tool: echo,
      input,
      callId: call.id,
      batchId: "run:1",
      callIndex: 0,
      turn: 1,
      idempotencyKey: "run:1:0",
      progress() {},
    },
    stop: { message: { role: "assistant", parts: [] }, transcript, continuations: 0, limit: 8, resumed: false },
    compact: { trigger: "auto", transcript, instructions: "", budget: 1_000, model, askModel },
    subagent: { child: "child", prompt: user("Help"), depth: 1, call: call.id, settings: {} },
    error: { error: new Error("trouble"), source: "execute", recoverable: false, attempt: 1 },
    abort: { reason: "stop", source: "stop", message: undefined, open: [], usage: noUsage },
  } as const satisfies {
    [P in keyof HookContexts<unknown>]: Omit<HookContexts<unknown>[P], "run" | "signal" | "emit" | "vars">;
  };
}
