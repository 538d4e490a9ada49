/**
 * Calls of tools: their results, their inputs, and how they ran.
 *
 * @module
 */
import {
  allow,
  type Approval,
  type Call,
  type ContentPart,
  type Middleware,
  textOf,
  type ToolContext,
  type ToolResult,
} from "../../../mod.ts";
import { canonicalJson } from "../../../src/core/kit.ts";
import { messageOf } from "./warn.ts";

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

/** Whether the input of a call is valid for the schema of its tool. False for an unknown tool. */
export async function isValidCall({ tool, input }: Pick<ToolContext, "tool" | "input">): Promise<boolean> {
  if (!tool) return false;
  const { issues } = await tool.input["~standard"].validate(input);
  return !issues;
}

/** How the execution of a call went. */
export interface Execution {
  /** The time of the tool's own work, in milliseconds. */
  readonly ms: number;
  /** The error that the tool threw. */
  readonly thrown?: { readonly error: unknown };
}

/** Observes executions: the `execute` hook, and the last execution of a call. */
export interface Executions {
  readonly execute: NonNullable<Middleware["execute"]>;
  of(call: Call): Execution | undefined;
  /** Returns the message of the error as the tool threw it; for a failure without an error, the text of the result. */
  errorOf(call: Call, result: ToolResult): string;
}

/** Creates an observer of executions. */
export function observeExecutions(): Executions {
  const all = new WeakMap<Call, Execution>();
  return {
    async execute(ctx, next) {
      const start = performance.now();
      const keep = (more: Partial<Execution>) => all.set(ctx.call, { ms: performance.now() - start, ...more });
      try {
        const result = await next();
        keep({});
        return result;
      } catch (error) {
        keep({ thrown: { error } });
        throw error;
      }
    },
    of: (call) => all.get(call),
    errorOf(call, result) {
      const thrown = all.get(call)?.thrown;
      return thrown && result.status !== "ok" ? messageOf(thrown.error) : textOf(result);
    },
  };
}
