/**
 * Tools: functions that the model may call, and the schemas of their inputs.
 *
 * @module
 */
import * as z from "zod/v4/core";
import { reasonOf } from "./lib/cancellation.ts";
import type { ModelContext } from "./points.ts";
import type { Scope } from "./scope.ts";
import type { ToolDefinition } from "../model/model.ts";
import { brand } from "../protocol/brand.ts";
import type { ToolResult } from "../protocol/message.ts";
import { expectNames } from "../protocol/shape.ts";

// Schemas: a schema is a Standard Schema that converts to JSON Schema, such as one of Zod or zod/mini.

/** A Standard Schema. */
export interface Schema<I = unknown, O = I> {
  /** The interface that Standard Schema defines. */
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Validation<O> | Promise<Validation<O>>;
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: "draft-2020-12" }) => { [key: string]: unknown };
      readonly output: (options: { readonly target: "draft-2020-12" }) => { [key: string]: unknown };
    };
    readonly types?: { readonly input: I; readonly output: O } | undefined;
  };
}

/** The result of a validation: the value, or the issues. */
export type Validation<O> =
  | { readonly value: O; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

/** One issue of a validation. */
export interface Issue {
  /** The message for a person. */
  readonly message: string;
  /** The path of the field. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type of a schema's validated values. */
export type Infer<S> = S extends { readonly "~standard": { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly output: infer O } ? O : unknown
  : unknown;

/** Creates a schema from a JSON Schema and a validation function. Default of `validate`: accepts every value. */
export function schemaOf<T>(
  json: { readonly [key: string]: unknown },
  validate: (value: unknown) => Validation<T> = (value) => ({ value: value as T }), // the caller vouches for the type
): Schema<T> {
  const copy = () => ({ ...json });
  return { "~standard": { version: 1, vendor: "jizai", validate, jsonSchema: { input: copy, output: copy } } };
}

/** Returns the Standard Schema of `schema`. One of the core of Zod 4, as zod/mini has them, leaves out the conversion to JSON Schema, which is added. */
export function standardOf<S extends Schema>(schema: S): S["~standard"] {
  const standard = schema?.["~standard"]; // code without types may pass anything
  if (standard?.jsonSchema || !isZodCore(schema)) return standard;
  const convert = (io: "input" | "output") => () => z.toJSONSchema(schema, { io });
  return { ...standard, jsonSchema: { input: convert("input"), output: convert("output") } };
}

function isZodCore(schema: object | undefined): schema is z.$ZodType {
  return Object(schema)._zod?.def !== undefined;
}

/** Returns the JSON Schema of the input of `schema`. Throws a `TypeError` if the schema library cannot convert it. */
export function jsonSchemaOf(schema: Schema, subject: string): { readonly [key: string]: unknown } {
  const { jsonSchema, vendor } = standardOf(schema) ?? {};
  if (!jsonSchema) {
    const why = vendor ? `its ${vendor} schema does not convert to JSON Schema` : "it has no schema";
    throw new TypeError(
      `Cannot describe ${subject}: ${why}; expected a Standard Schema that converts, such as one of Zod 4 or zod/mini`,
    );
  }
  try {
    return jsonSchema.input({ target: "draft-2020-12" });
  } catch (cause) {
    throw new TypeError(`Cannot describe ${subject}: ${reasonOf(cause)}; expected types that JSON has`, { cause });
  }
}

/** Returns the issues as one line that a model can act on. */
export function describeIssues(issues: readonly Issue[]): string {
  return issues.map(({ path = [], message }) => {
    const place = path.map((key) => String(typeof key === "object" ? key.key : key)).join(".");
    return place ? `${place}: ${message}` : message;
  }).join("; ");
}

// The tool, its context and its options.

/** The context of a tool's execution. There is no scheduler: a tool that must wait for another one waits inside `execute`. */
export interface ToolExecutionContext<V = unknown> extends Scope<V> {
  /** The provider's id of the call. */
  readonly callId: string;
  /** The id of the batch of calls: new for every model response, and for a resumed batch. */
  readonly batchId: string;
  /** The call's place in the model's order, from 0. Answered calls count too. */
  readonly callIndex: number;
  /** The turn, from 1. */
  readonly turn: number;
  /** The idempotency key for other services: the same for every attempt of this call, also after a resume. */
  readonly idempotencyKey: string;
  /** Emits a `tool.progress` event. While its receivers are slower than the tool, only the latest one is kept. */
  readonly progress: (data: unknown) => void;
  /** The open call, for features of the engine. */
  readonly "~call": unknown;
  /**
   * Runs a part of the tool once, also if the call runs again after a crash, a pause or a failure. Its value is stored before the promise resolves, and a later
   * execution of the call receives the value without calling `work`. If the process dies before the value is stored, `work` runs again. Its `key` is the same for
   * every attempt of the step, in every process: pass it to services as their idempotency key. A tool that has begun a step runs again after its process died, as
   * if it were `idempotent`, so all its effects belong in steps.
   *
   * A name is unique in its call; a step that has thrown may be tried again. Rejects with a `TypeError` if the name is taken or the value is not JSON, and with
   * the reason of the signal if the call is stopped.
   */
  readonly step: <T>(name: string, work: (step: { readonly key: string }) => T | Promise<T>) => Promise<T>;
}

/**
 * The operation behind a call, for telemetry: on a memory, of planning, or with a skill. `record` is the id of a record, and `resource` the file of a skill, as
 * the model names it.
 */
export type ToolOperation =
  | {
    readonly type: "search_memory" | "create_memory" | "update_memory" | "delete_memory";
    readonly record?: string;
  }
  | { readonly type: "plan" }
  | { readonly type: "skill"; readonly name: string; readonly resource?: string };

/** A tool. `I` is its parsed input, `O` its return value, `V` the vars it needs. */
export interface Tool<I, O, V> {
  /** The name that the model uses. */
  readonly name: string;
  /** The purpose of the tool, for the model. */
  readonly description: string;
  /** The schema of its input. */
  readonly input: Schema;
  /** The definition that the model receives. */
  readonly definition: ToolDefinition;
  /** Whether a person must approve: every call, or those for which the function does not return false. */
  readonly ask?: boolean | ((input: I, scope: Scope<V>) => boolean | Promise<boolean>);
  /** True if a call may run again, with the same idempotency key. */
  readonly idempotent?: boolean;
  /** Whether a call may overlap with others of its response. A function decides by the input that the model gave. */
  readonly parallel?: boolean | ((input: I) => boolean | Promise<boolean>);
  /** True if calls change nothing, so they may overlap with others even if a middleware requests groups. */
  readonly readOnly?: boolean;
  /** False if an input that the schema rejects is never repaired. */
  readonly repair?: boolean;
  /** The operation behind a call, for telemetry. */
  readonly operation?: ToolOperation | ((input: I, scope: Scope<V>) => ToolOperation | undefined);
  /** Does the work. */
  readonly execute: (input: I, ctx: ToolExecutionContext<V>) => O | Promise<O>;
  /** Replaces `execute` for a feature of the engine, which receives the open call. Subagents hold a slot of their own kind. */
  readonly "~execute"?: (ctx: never, call: never) => Promise<ToolResult>;
  /** Changes each request that may contain the tool, right before it is sent. All tools that have it share one function. */
  readonly "~request"?: (ctx: ModelContext) => Promise<ModelContext>;
  /** Creates the tool anew from another definition, if the client of a request declared it and runs it. Such a tool gives way to every other tool of its name. */
  readonly "~client"?: (definition: ToolDefinition) => AnyTool;
}

/** Any tool of an agent with vars `V`. */
export type AnyTool<V = unknown> = Tool<never, unknown, V>;

/** The tools of a run, as its steps look them up. */
export interface ToolTable {
  /** The tools, by name. */
  readonly toolsByName: ReadonlyMap<string, AnyTool>;
  /** The definitions that the model receives. */
  readonly definitions: readonly ToolDefinition[];
  /** Changes each request right before it is sent, if one of the tools needs it. */
  readonly prepare: AnyTool["~request"];
}

/** Returns the table of `tools`. Of two tools with the same name, the last one counts. */
export function toolTable(tools: readonly AnyTool[]): ToolTable {
  const toolsByName = new Map(tools.map((tool) => [tool.name, tool]));
  return {
    toolsByName,
    definitions: [...toolsByName.values()].map(({ definition }) => definition),
    prepare: tools.find((tool) => tool["~request"])?.["~request"],
  };
}

/** The options of `tool()`. */
export interface ToolOptions<S extends Schema, O, V> {
  /** The name: 1 to 64 of `A-Z a-z 0-9 _ -`, as providers accept it. */
  readonly name: string;
  /** The purpose of the tool, for the model. */
  readonly description: string;
  /** The schema of its input: a Standard Schema that converts to JSON Schema. */
  readonly input: S;
  /** Whether a person must approve a call before it runs. A call runs without approval only if the function returns exactly false. Default: false. */
  readonly ask?: boolean | ((input: NoInfer<Infer<S>>, scope: Scope<V>) => boolean | Promise<boolean>);
  /**
   * True if a call may run again, with the same `idempotencyKey`: after its process died, or because a hook decides so. Default: false. The model then reads
   * that the call was interrupted, and a hook at `execute` that calls `next()` again gets an error.
   */
  readonly idempotent?: boolean;
  /**
   * Whether a call may overlap with others of its response. False: it runs alone, with its hooks around it. True: it may share a group also where a
   * middleware requests groups. A function decides by the input that the model gave. Default: it overlaps, unless a middleware requests groups.
   */
  readonly parallel?: boolean | ((input: NoInfer<Infer<S>>) => boolean | Promise<boolean>);
  /** True if calls change nothing. If a middleware requests groups, such calls may overlap with others. Default: false. */
  readonly readOnly?: boolean;
  /**
   * Whether an input that the schema rejects is repaired, if it fits then. A nested value that the model wrote as a JSON string is parsed, and null for an
   * optional field is left out. A value that fits never changes. Guards and hooks see the repaired input. Default: true.
   */
  readonly repair?: boolean;
  /** The operation behind a call, for telemetry: on a memory, of planning, or with a skill. `otel()` describes it. Default: none. */
  readonly operation?: ToolOperation | ((input: NoInfer<Infer<S>>, scope: Scope<V>) => ToolOperation | undefined);
  /** Does the work. A string or a `ToolResult` is sent to the model as it is, every other value as JSON. A thrown error becomes an error result. */
  readonly execute: (input: NoInfer<Infer<S>>, ctx: ToolExecutionContext<V>) => O | Promise<O>;
}

/**
 * Creates a tool. Throws a `TypeError` for a name that providers reject, without `execute`, for an unknown option, or for a schema without JSON Schema.
 *
 * ```ts
 * import { tool } from "@jizai/jizai";
 * import * as z from "zod";
 *
 * const weather = tool({
 *   name: "weather",
 *   description: "Current weather of a city",
 *   input: z.object({ city: z.string() }),
 *   execute: ({ city }) => `Sunny in ${city}`,
 * });
 * ```
 */
export function tool<S extends Schema, O, V = unknown>(options: ToolOptions<S, O, V>): Tool<Infer<S>, O, V> {
  const fields = Object(options) as typeof options; // code without types may pass nothing
  const { name, description, input, ask, execute } = fields;
  const operation = `Cannot create tool ${JSON.stringify(name)}`;
  if (typeof name !== "string" || !toolNamePattern.test(name)) {
    throw new TypeError(`${operation}: expected a name of ${toolNameRule}`);
  }
  if (typeof execute !== "function") throw new TypeError(`${operation}: expected a function \`execute\``);
  expectNames(operation, options, [...optionNames, "definition"]); // so that `tool({ ...other, name })` creates a variant
  if (ask !== undefined && typeof ask !== "boolean" && typeof ask !== "function") {
    throw new TypeError(`${operation}: its \`ask\` is ${ask}; expected true, false or a function`);
  }
  // By name, because a spread has no methods or getters of a class, and the guard may be one.
  const definedFields = optionNames.map((key) => [key, fields[key]] as const).filter(([, value]) =>
    value !== undefined
  );
  const definition = { name, description, schema: jsonSchemaOf(input, `tool "${name}"`) };
  return { ...options, ...Object.fromEntries(definedFields), definition };
}

const optionNames = [
  "name",
  "description",
  "input",
  "ask",
  "idempotent",
  "parallel",
  "readOnly",
  "repair",
  "operation",
  "execute",
] as const satisfies readonly (keyof ToolOptions<Schema, unknown, unknown>)[];

/** The pattern of tool names. */
export const toolNamePattern = /^[A-Za-z0-9_-]{1,64}$/;
/** The pattern of tool names, in words. */
export const toolNameRule = "1 to 64 of A-Z a-z 0-9 _ -";

/** An error whose message the model reads. For other errors, the model reads only that the tool failed, and the operator gets the error. */
export class ToolError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "ToolError");

  /** The name of the class. */
  override readonly name = "ToolError";
}
