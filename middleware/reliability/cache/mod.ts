/**
 * Caches responses of models and results of tools.
 *
 * @module
 */
import { Flights } from "./flights.ts";
import {
  type ExecuteContext,
  type Message,
  type Middleware,
  type ModelContext,
  type ModelResponse,
  noUsage,
  type Scope,
  type ToolResult,
} from "../../../mod.ts";
import { canonicalJson, expectNames, hashOf, type KeyValue, partEvent } from "../../../src/core/kit.ts";
export type { KeyValue } from "../../../src/core/kit.ts";

// Keys: equal requests and calls have the same one, whatever their ids.

/** Returns the key of a value: a hash of its canonical JSON. */
async function keyOf(kind: "model" | "tool", value: unknown): Promise<string> {
  return `cache/${kind}/${await hashOf(canonicalJson(value))}`;
}

/** Returns the part of a request that decides about its response. */
function requestKey({ request: { model, instructions, messages, tools, options } }: ModelContext): unknown {
  return { model: model.id, instructions, messages: withoutIds(messages), tools, options };
}

/** Leaves out the ids of messages and the calls inside subagents, and numbers the calls: clients and providers choose ids at random. */
function withoutIds(messages: readonly Message[]): unknown {
  const numbers = new Map<string, number>();
  const numberOf = (id: string) => {
    const number = numbers.get(id) ?? numbers.size;
    numbers.set(id, number);
    return number;
  };
  return messages.map((message) => {
    if (message.role === "tool") {
      const results = message.results.map(({ inner: _, ...result }) => ({
        ...result,
        callId: numberOf(result.callId),
      }));
      return { ...message, results };
    }
    if (message.role === "user") return { ...message, id: undefined };
    return {
      ...message,
      parts: message.parts.map((part) => part.type === "call" ? { ...part, id: numberOf(part.id) } : part),
    };
  });
}

// The middleware `cache()`, and its options.

/** Options of `cache()`. */
export interface CacheOptions<V = unknown> {
  /** The database of the cache. */
  readonly keyValue: KeyValue;
  /** Milliseconds after which an entry is deleted. Default: an hour. */
  readonly expireIn?: number;
  /** Whether a request to a model is cached. Default: true. */
  readonly model?: boolean | ((ctx: ModelContext<V>) => boolean | Promise<boolean>);
  /** The names of the tools whose results are cached, or a function that decides about a call. Default: none. */
  readonly tools?: readonly string[] | ((ctx: ExecuteContext<V>) => boolean | Promise<boolean>);
  /**
   * Returns a second key of the entries, besides the request or the call: only runs with the same value share them. Default: the owner of the session.
   * `() => "all"` shares entries with all owners.
   */
  readonly per?: (scope: Scope<V>) => string | undefined | Promise<string | undefined>;
}

/** The size of the largest entry, which is that of the key-value port. */
const maxLength = 500_000;

/**
 * Answers a request to a model, and a call of a tool, from the cache if the same was answered before. The key of a response contains the owner, the model,
 * the instructions, the messages, the tools and the options; the key of a result contains the owner, the tool and the input. The same work in progress is
 * done once, and each run that waits for it receives its outcome. If it fails, one of them does it again for all; if this fails too, each does it itself.
 *
 * Only complete responses and results with the status "ok" are kept. A cached response takes no tokens, and its text is streamed as one piece. If the database
 * fails, the model or the tool is asked, and the error is reported. Put `cache` outside of `retry`, and outside of `redact`, so that the database receives no
 * secret. A subagent with a `cache()` of its own uses the `redact()` of its caller after it. List a tool only if its result depends on its input and the owner
 * alone; add to `per` what else it depends on, such as a value in `vars`.
 *
 * Throws a `TypeError` without a database, and for an unknown option or one of the wrong type, and a `RangeError` if `expireIn` is not a positive number.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { cache } from "@jizai/jizai/middleware/cache";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { memoryKeyValue } from "@jizai/jizai/session/key_value";
 * import { assertEquals } from "@std/assert";
 *
 * const model = scripted("Kyoto is in Japan.");
 * const assistant = agent({ model, use: [cache({ keyValue: memoryKeyValue() })] });
 *
 * await assistant.run("Where is Kyoto?").result;
 * const { text, usage } = await assistant.run("Where is Kyoto?").result;
 * assertEquals([text, usage], ["Kyoto is in Japan.", { input: 0, output: 0 }]);
 * model.done();
 * ```
 */
export function cache<V = unknown>(options: CacheOptions<V>): Middleware<V> {
  checkOptions(options);
  const { keyValue, expireIn = 3_600_000, model = true, tools = [], per = ({ run }) => run.owner } = options;
  const responses = new Flights<ModelResponse>();
  const results = new Flights<ToolResult>();
  const isCachedRequest = typeof model === "function" ? model : () => model;
  const isCachedCall = typeof tools === "function" ? tools : (ctx: ExecuteContext<V>) => tools.includes(ctx.tool.name);

  /** Returns an entry, or undefined if there is none that can be read. */
  async function find(key: string, ctx: Scope<V>): Promise<unknown> {
    try {
      const text = await keyValue.get(key);
      return text === undefined ? undefined : JSON.parse(text);
    } catch (error) {
      ctx.run.report(error);
      return undefined;
    }
  }

  async function keep(key: string, value: unknown, ctx: Scope<V>): Promise<void> {
    try {
      const text = JSON.stringify(value);
      if (text.length <= maxLength) await keyValue.set(key, text, { expireIn });
    } catch (error) {
      ctx.run.report(error);
    }
  }

  return {
    name: "cache",
    before: ["redact"], // after it, the database would receive the secrets
    async model(ctx, next) {
      if (!await isCachedRequest(ctx)) return await next();
      const key = await keyOf("model", { per: await per(ctx), ...Object(requestKey(ctx)) });
      let isOwn = false;
      const response = await responses.run(key, ctx.signal, async () => {
        const found = await find(key, ctx);
        if (isResponse(found)) return found;
        isOwn = true;
        const fresh = await next();
        if (isComplete(fresh)) await keep(key, fresh, ctx);
        return fresh;
      }, isComplete);
      if (isOwn) return response;
      emitParts(response, ctx);
      const { firstChunk: _, edits: __, ...cached } = response; // those of the request that was sent
      return { ...cached, usage: noUsage, attempts: 0 };
    },
    async execute(ctx, next) {
      if (!await isCachedCall(ctx)) return await next();
      const key = await keyOf("tool", { per: await per(ctx), tool: ctx.tool.name, input: ctx.input });
      const isOk = (result: ToolResult) => result.status === "ok";
      return await results.run(key, ctx.signal, async () => {
        const found = await find(key, ctx);
        if (isResult(found)) return found;
        const fresh = await next();
        const { input: _, error: __, ...kept } = fresh;
        if (isOk(fresh)) await keep(key, kept, ctx);
        return fresh;
      }, isOk);
    },
  };
}

function checkOptions<V>(options: CacheOptions<V>): void {
  const subject = "Cannot create cache()";
  expectNames(subject, options, ["keyValue", "expireIn", "model", "tools", "per"]);
  const { keyValue, expireIn = 1, model, tools = [], per } = options;
  if (typeof keyValue?.get !== "function") {
    throw new TypeError(`${subject}: it has no database; expected \`keyValue\`, such as memoryKeyValue()`);
  }
  if (typeof tools !== "function" && !Array.isArray(tools)) {
    throw new TypeError(`${subject}: \`tools\` is ${tools}; expected a list of names, or a function`);
  }
  if (!["undefined", "boolean", "function"].includes(typeof model)) {
    throw new TypeError(`${subject}: \`model\` is ${JSON.stringify(model)}; expected true, false or a function`);
  }
  if (!["undefined", "function"].includes(typeof per)) {
    throw new TypeError(`${subject}: \`per\` is ${JSON.stringify(per)}; expected a function`);
  }
  if (!(typeof expireIn === "number" && expireIn > 0)) {
    throw new RangeError(
      `${subject}: \`expireIn\` is ${JSON.stringify(expireIn)}; expected a positive number of milliseconds`,
    );
  }
}

/** Emits the parts of a cached response, so that clients receive them in order with the other events. The engine emits its calls. */
function emitParts({ parts }: ModelResponse, { emit, turn }: ModelContext): void {
  parts.forEach((part, index) => {
    const isEmpty = (part.type === "text" || part.type === "reasoning") && part.text === "";
    if (part.type !== "call" && !isEmpty) emit(partEvent(part, { turn, part: index }));
  });
}

/** Whether a response is the same each time: it was neither cut nor filtered. */
function isComplete({ finish }: ModelResponse): boolean {
  return finish === "stop" || finish === "calls";
}

function isResponse(value: unknown): value is ModelResponse {
  const { parts, finish, model } = Object(value);
  return Array.isArray(parts) && typeof finish === "string" && typeof model === "string";
}

function isResult(value: unknown): value is ToolResult {
  const { type, status, parts } = Object(value);
  return type === "result" && status === "ok" && Array.isArray(parts);
}
