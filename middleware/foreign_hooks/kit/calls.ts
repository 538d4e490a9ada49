/**
 * Calls of tools, as the adapters of all systems see them: their inputs, results, errors, decisions and groups.
 *
 * @module
 */
import {
  allow,
  type Approval,
  type Call,
  type ContentPart,
  type Middleware,
  type Scope,
  type State,
  state,
  textOf,
  type ToolContext,
  type ToolResult,
} from "../../../mod.ts";
import { canonicalJson, jsonThatRuns } from "../../../src/core/kit.ts";

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

// Remembers the decisions of hooks about calls over a pause, so that no hook is asked twice.

/** A decision, and the batch in which its call entered. */
interface KeptDecision<D> {
  readonly batch: string;
  readonly made: D;
}

/** A call at one of its points. */
type AtCall = Scope & Pick<ToolContext, "turn" | "call">;

/**
 * The decisions of a middleware about calls. They are plain JSON, and are saved with the run until their calls come out: no hook is asked again on resume.
 * Middleware of the same kind and `owner` share the list of a call, in which the decision of the outermost is the first.
 */
export class CallDecisions<D> {
  readonly #kept: State<Readonly<Record<string, readonly KeptDecision<D>[]>>>;
  readonly #owner: string;
  readonly #last = new WeakMap<Call, D>();

  /** Creates an empty list. `key` is the key of its state. */
  constructor(key: string, owner: string) {
    this.#kept = state(key, () => ({}));
    this.#owner = owner;
  }

  /** Returns the decision about a call that enters: the one that was made before a pause, if it still `holds`, or a new one. */
  async enter(
    ctx: ToolContext,
    decide: (before: D | undefined) => Promise<D>,
    holds: (made: D) => boolean,
  ): Promise<D> {
    const { batchId: batch } = ctx;
    const key = this.#keyOf(ctx);
    const kept = this.#kept.get(ctx)[key] ?? [];
    const place = kept.findLastIndex((each) => each.batch === batch) + 1; // the outer ones have entered before
    const before = kept[place]?.made;
    const made = before !== undefined && holds(before) ? before : await decide(before);
    this.#last.set(ctx.call, made);
    this.#kept.update(ctx, (all) => ({ ...all, [key]: kept.toSpliced(place, 1, { batch, made }) }));
    return made;
  }

  /** Adds a decision about a call that has not entered. Inner middleware make theirs first. */
  add(ctx: AtCall, made: D): void {
    this.#kept.update(ctx, (all) => ({
      ...all,
      [this.#keyOf(ctx)]: [{ batch: "", made }, ...all[this.#keyOf(ctx)] ?? []],
    }));
  }

  /** Returns the last decision about a call in this process. */
  of(call: Call): D | undefined {
    return this.#last.get(call);
  }

  /** Replaces the last decision about a call. */
  set(call: Call, made: D): void {
    this.#last.set(call, made);
  }

  /** Returns the decisions of all middleware that share the list. */
  all(ctx: AtCall): readonly D[] {
    return (this.#kept.get(ctx)[this.#keyOf(ctx)] ?? []).map(({ made }) => made);
  }

  /** Forgets a call that has come out. */
  leave(ctx: AtCall): void {
    const key = this.#keyOf(ctx);
    if (key in this.#kept.get(ctx)) this.#kept.update(ctx, ({ [key]: _, ...rest }) => rest);
  }

  #keyOf({ turn, call }: AtCall): string {
    return `${turn} ${call.id} ${this.#owner}`;
  }
}

/** Splits `mcp__server__tool`, the name of a tool of an MCP server; undefined for every other name. */
export function mcpToolOf(name: string): { readonly serverName: string; readonly toolName: string } | undefined {
  const [, serverName, toolName] = name.match(/^mcp__(.+?)__(.+)$/) ?? [];
  return serverName === undefined || toolName === undefined ? undefined : { serverName, toolName };
}

/** Returns `groups` for a middleware: each call runs alone, with its hooks around it, unless its tool says that it may overlap with others. */
export function separateCalls(): Required<Pick<Middleware, "groups">> {
  return { groups: ({ parallel }) => parallel ? "parallel" : "alone" };
}

/** Returns the message of an error, as thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
