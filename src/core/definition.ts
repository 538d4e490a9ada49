/**
 * The definition of an agent: its options are checked, and its parts composed once. Every run reads it, and none changes it.
 *
 * @module
 */
import type { AgentOptions } from "./agent.ts";
import { points } from "./each_hook.ts";
import { expectChoice } from "./lib/options.ts";
import { defaultLimits, limited, type Limits } from "./limits.ts";
import { type Middleware, nameOf } from "./middleware.ts";
import { compose, type Conditional, type Hook, type Onion } from "./onion.ts";
import { outputFormat, type OutputStream } from "./output.ts";
import { expectNoPromise } from "./policy.ts";
import type { ModelContext } from "./points.ts";
import type { Steps } from "./position.ts";
import { promptSteps } from "./regions.ts";
import type { Change, Scope } from "./scope.ts";
import { strictByDefault, wrapperOf } from "./strict.ts";
import { type AnyTool, type Schema, type ToolTable, toolTable } from "./tool.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import type { Event, FinishReason, Point } from "../protocol/event.ts";
import type { UserMessage } from "../protocol/message.ts";
import { expectNames } from "../protocol/shape.ts";

// The check for misspelt hooks.

/** Throws a `TypeError` that starts with `subject` and suggests a point if a function of a middleware has a name that resembles one. */
function checkHookNames(subject: string, middleware: Middleware): void {
  for (const [key, value] of Object.entries(middleware)) {
    if (typeof value !== "function" || points.some((point) => point === key)) continue;
    const plain = key.replace(/^(on|before|after|pre|post|wrap)_?/i, "").toLowerCase();
    const point = points.find((point) => distance(point, plain) <= (point.length > 4 ? 2 : 1));
    if (point) throw new TypeError(`${subject}: there is no point "${key}"; expected "${point}"`);
  }
}

/** Returns the number of characters to insert, delete or replace to make `b` of `a`. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (const [line, letter] of [...a].entries()) {
    const next = [line + 1];
    for (const [column, other] of [...b].entries()) {
      const [left = 0, above = 0, diagonal = 0] = [next[column], row[column + 1], row[column]];
      next.push(Math.min(left + 1, above + 1, diagonal + (letter === other ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1) ?? a.length;
}

// The checks of the values in `use`.

/** The version of the interface of middleware. Increase it if a change breaks existing middleware. */
const interfaceVersion = 1;

/** Throws a `TypeError` if `use` is not a list of middleware whose hooks are functions of points, written for this version of the interface. */
function checkMiddleware(use: readonly Middleware[]): void {
  if (!Array.isArray(use)) throw new TypeError("Cannot create the agent: expected a list of middleware in `use`");
  for (const [index, middleware] of use.entries()) {
    checkShape(middleware, index);
    const name = nameOf(middleware, index);
    const subject = `Cannot use "${name}"`;
    const point = points.find((point) => middleware[point] !== undefined && typeof middleware[point] !== "function");
    if (point) throw new TypeError(`${subject}: its \`${point}\` is not a function; expected a hook`);
    const { interfaceVersion: version = interfaceVersion } = middleware;
    if (version !== interfaceVersion) {
      const update = version > interfaceVersion ? "@jizai/jizai" : `the package of "${name}"`;
      const why = `it was written for version ${version} of the interface`;
      throw new TypeError(`${subject}: ${why}; expected ${interfaceVersion}, update ${update}`);
    }
    checkHookNames(subject, middleware);
  }
}

/** Throws a `TypeError` if a value in `use` is not an object that may have hooks. */
function checkShape(value: unknown, index: number): void {
  if (typeof value === "function" && value.name !== "") {
    throw new TypeError(`Cannot use "${value.name}": call it, as ${value.name}()`);
  }
  const operation = `Cannot use use[${index}]`;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TypeError(`${operation}: expected a middleware, an object with hooks`);
  }
  expectNoPromise(operation, value);
}

// The order of middleware: the check of the given order, and the sort by declarations.

/** Returns `use`. Throws a `TypeError` that names both middleware and the fix if it breaks an order that one of them declares. */
function checkOrder(use: readonly Middleware[]): readonly Middleware[] {
  for (const [outer, inner] of declaredPairs(use)) {
    if (outer < inner) continue;
    const [first, last] = namesOf(use, [outer, inner]);
    throw new TypeError(`Cannot use "${last}" before "${first}": put ${first}() first in use`);
  }
  return use;
}

/** Returns `use` in the order that `after` and `before` declare, and otherwise in the given order. Throws a `TypeError` that names the middleware of a cycle. */
function sortByDeclaration(use: readonly Middleware[]): readonly Middleware[] {
  const pairs = declaredPairs(use);
  const rest = [...use.keys()];
  const sorted: number[] = [];
  while (rest.length > 0) {
    const isFree = (index: number) => !pairs.some(([outer, inner]) => inner === index && rest.includes(outer));
    const place = rest.findIndex(isFree);
    if (place < 0) throw cycleError(use, rest, pairs);
    sorted.push(...rest.splice(place, 1));
  }
  return sorted.flatMap((index) => use.slice(index, index + 1));
}

/** The places of two middleware: the first must stand outside of the second. */
type Pair = readonly [outer: number, inner: number];

/** Returns the order that the middleware declare. Throws a `TypeError` for a name that is missing or not unique. */
function declaredPairs(use: readonly Middleware[]): readonly Pair[] {
  const names = use.map(({ name }) => name);
  return use.flatMap((middleware, index) => {
    const { after = [], before = [], requires = [] } = middleware;
    const name = nameOf(middleware, index);
    for (const other of [...after, ...before, ...requires]) {
      if (names.indexOf(other) === names.lastIndexOf(other)) continue;
      throw new TypeError(
        `Cannot use "${name}" with two middleware named "${other}": expected one, give one another name`,
      );
    }
    for (const other of requires) {
      if (!names.includes(other)) {
        throw new TypeError(`Cannot use "${name}" without "${other}": add ${other}() to use`);
      }
    }
    const outer = after.map((other): Pair => [names.indexOf(other), index]);
    const inner = before.map((other): Pair => [index, names.indexOf(other)]);
    return [...outer, ...inner].filter((pair) => !pair.includes(-1)); // an order with a middleware that is not used
  });
}

/** Returns the error for middleware of which each must stand after another one. */
function cycleError(use: readonly Middleware[], rest: readonly number[], pairs: readonly Pair[]): TypeError {
  const path: number[] = [];
  let at: number | undefined = rest[0];
  while (at !== undefined && !path.includes(at)) {
    path.unshift(at);
    at = pairs.find(([outer, inner]) => inner === path[0] && rest.includes(outer))?.[0];
  }
  const cycle = path.slice(0, path.findIndex((index) => index === at) + 1);
  const chain = namesOf(use, [...cycle, ...cycle.slice(0, 1)]).map((name) => `"${name}"`).join(" before ");
  return new TypeError(`Cannot order the middleware: ${chain}; remove one of these declarations`);
}

function namesOf(use: readonly Middleware[], places: readonly number[]): readonly string[] {
  return places.map((place) => nameOf(use[place] ?? {}, place));
}

// The definition: the parts of an agent, and the onions composed of them.

/** The hooks of every point, composed. */
export type Onions = { readonly [P in Point]: OnionOf<NonNullable<Middleware[P]>> };

/** The hooks of one point, composed. `H` is a hook of that point. */
export type OnionOf<H> = H extends Hook<infer C, infer D, infer R> ? Onion<C, D, R> : never;

/** The format of the final answer. */
export interface AnswerFormat {
  /** The JSON Schema of the answer. */
  readonly schema: { readonly [key: string]: unknown };
  /** Adds the format to a request. */
  shape(request: ModelRequest): ModelRequest;
  /** Reads the final text. Returns the structured answer, or a message that asks the model again. */
  read(
    text: string,
    finish: FinishReason | undefined,
  ): Promise<{ readonly output: unknown } | { readonly retry: UserMessage }>;
  /** Streams the partial answer. Undefined unless the schema is `streamed()`. */
  readonly stream?: OutputStream | undefined;
}

/** Wraps each hook of an agent. */
export interface WrapHooks {
  /** Wraps a hook. */
  <C extends Scope, D extends object, R>(point: Point, middleware: string, hook: Hook<C, D, R>): Hook<C, D, R>;
  /** Receives each request to a model as it is sent. */
  readonly requested?: (ctx: ModelContext) => void;
}

/** Whether an agent has a trace. */
export function hasTrace(agent: { readonly "~definition": object }): boolean {
  const { wrapHooks } = agent["~definition"] as AgentDefinition; // agent() made it
  return wrapHooks?.requested !== undefined;
}

/** The parts of an agent. */
export interface AgentParts {
  /** The agent's name. */
  readonly name: string;
  /** The agent's purpose, for the model of a parent agent. */
  readonly description: string;
  /** The model, or a function that picks one per request. */
  readonly model: Model | ((scope: Scope) => Model | Promise<Model>);
  /** The system prompt, or a function that returns it. */
  readonly instructions: string | ((scope: Scope) => string | Promise<string>);
  /** The agent's own tools. */
  readonly tools: readonly AnyTool[];
  /** The limits of a run. */
  readonly limits: Limits;
  /** The clock of its runs. Undefined for `Date.now`. */
  readonly now: (() => number) | undefined;
  /** The format of the final answer. Undefined for plain text. */
  readonly format: AnswerFormat | undefined;
  /** Functions that receive each event of a run. */
  readonly observers: readonly ((event: Event) => void)[];
  /** The middleware, outermost first. */
  readonly use: readonly Middleware[];
  /** Wraps each hook, as `trace` does. Undefined if nothing does. */
  readonly wrapHooks: WrapHooks | undefined;
  /**
   * Steps for further positions.
   *
   * @internal
   */
  readonly steps: Steps;
  /** Throws a `TypeError` if a limit needs a feature that the agent does not have. */
  readonly checkLimits: (limits: Limits) => void;
}

/** An agent, composed. */
export interface AgentDefinition extends AgentParts {
  /** The hooks of every point, composed. */
  readonly onions: Onions;
  /** True if it has `input` hooks. */
  readonly reviewsInput: boolean;
  /** Its own tools, for every run that has no others. */
  readonly toolTable: ToolTable;
  /** The functions of middleware that request groups of calls. */
  readonly groups: readonly NonNullable<Middleware["groups"]>[];
  /** The functions of middleware that change what the store keeps, innermost first. */
  readonly savers: readonly NonNullable<Middleware["~save"]>[];
  /** The functions of middleware that change each request before it is sent, innermost first. */
  readonly senders: readonly NonNullable<Middleware["~request"]>[];
  /** The functions of middleware that mask the events of a trace, innermost first. */
  readonly maskers: readonly NonNullable<Middleware["~mask"]>[];
}

/** Composes the hooks of an agent. */
export function defineAgent(parts: AgentParts): AgentDefinition {
  const { use, wrapHooks } = parts;
  const names = uniqueNames(use.map(nameOf));

  function fold<C extends Scope, D extends Change, R>(point: Point): Onion<C, D, R> {
    return compose(use.flatMap((middleware, index) => {
      const hook = middleware[point] as Hook<C, D, R> | Conditional<C, D, R> | undefined; // C, D and R are those of the point
      const name = names[index] ?? "";
      if (!hook) return [];
      if (wrapHooks) return [{ name, hook: wrapHooks(point, nameOf(middleware, index), hook.bind(middleware)) }];
      return [{ name, hook: "~applies" in hook ? hook : hook.bind(middleware) }];
    }));
  }

  const onions = Object.fromEntries(points.map((point) => [point, fold(point)])) as Onions; // one for each point
  const groups = use.flatMap((middleware) => middleware.groups ? [middleware.groups.bind(middleware)] : []);
  const savers = use.flatMap((middleware) => middleware["~save"] ?? []).reverse();
  const senders = use.flatMap((middleware) => middleware["~request"] ?? []).reverse();
  const maskers = use.flatMap((middleware) => middleware["~mask"] ?? []).reverse();
  const reviewsInput = use.some(({ input }) => input !== undefined);
  return { ...parts, onions, reviewsInput, toolTable: toolTable(parts.tools), groups, savers, senders, maskers };
}

/** Returns names of which no two are the same: "always allow" binds to the guard that asked. */
function uniqueNames(names: readonly string[]): readonly string[] {
  const unique = new Set<string>();
  for (const name of names) {
    let uniqueName = name;
    for (let n = 2; unique.has(uniqueName); n++) uniqueName = `${name} (${n})`;
    unique.add(uniqueName);
  }
  return [...unique];
}

// The parts of an agent, from its options.

/** Completes and checks the options of an agent. Throws a `TypeError` for an option that is wrong. */
export function partsOf<V, S extends Schema>(options: AgentOptions<V, S>): AgentParts {
  checkOptions(options);
  const { name = "agent", description = name, model, instructions = "", output, tools = [], limits } = options;
  const { observe = [], trace, order, strict = strictByDefault() } = options;
  const allMiddleware = (options.use ?? []) as readonly Middleware[]; // run() requires the vars that they need
  checkMiddleware(allMiddleware);
  const use = order === "declared" ? sortByDeclaration(allMiddleware) : checkOrder(allMiddleware);
  const more = use.map((middleware) => middleware["~steps"] as Steps | undefined); // a feature of this engine made them
  const steps: Steps = Object.assign({}, promptSteps, ...more);
  const parts: AgentParts = {
    name,
    description,
    // run() requires the vars that these need
    model: model as AgentDefinition["model"],
    instructions: instructions as AgentDefinition["instructions"],
    tools: collectTools(use, tools as readonly AnyTool[]),
    limits: limited(defaultLimits, limits),
    now: options.now,
    format: output && outputFormat(output),
    observers: [observe].flat(),
    use,
    wrapHooks: wrapperOf(strict, trace),
    steps,
    checkLimits({ context }) {
      if (context < Infinity && !steps.compact) {
        const expected = 'expected compaction() of "@jizai/jizai/middleware/compaction" in use';
        throw new TypeError(`Cannot limit "context" to ${context} tokens: ${expected}`);
      }
    },
  };
  parts.checkLimits(parts.limits);
  return parts;
}

const optionNames: readonly (keyof AgentOptions<never, never>)[] = [
  "name",
  "description",
  "vars",
  "model",
  "instructions",
  "output",
  "tools",
  "use",
  "order",
  "limits",
  "observe",
  "strict",
  "now",
  "trace",
];

/** Throws a `TypeError` for an option that is unknown, or of another type. */
function checkOptions<V, S extends Schema>(options: AgentOptions<V, S>): void {
  const { name = "agent", model, order = "given", trace } = options;
  const operation = `Cannot create the agent "${name}"`;
  if (typeof model !== "function" && typeof model?.stream !== "function") {
    const why = model === undefined ? "it has no model" : "its `model` is not a model";
    throw new TypeError(`${operation}: ${why}; expected \`model\`, such as openai({ model, apiKey })`);
  }
  expectNames(operation, options, optionNames);
  expectChoice(operation, "order", order, ["given", "declared"]);
  if (trace !== undefined && typeof trace !== "function") {
    throw new TypeError(`Cannot trace: expected trace of "@jizai/jizai/trace", got ${trace}`);
  }
}

/** Returns all tools, the agent's own first. */
function collectTools(use: readonly Middleware[], agentTools: readonly AnyTool[]): readonly AnyTool[] {
  const from = new Map<string, string>();
  const sources = [
    { name: "tools", tools: agentTools },
    ...use.map((middleware, index) => ({ name: nameOf(middleware, index), tools: middleware.tools ?? [] })),
  ];
  return sources.flatMap(({ name, tools }) => {
    if (!Array.isArray(tools)) throw new TypeError(`Cannot create the agent: expected a list of tools in \`${name}\``);
    for (const tool of tools) {
      if (!Object(tool).definition) {
        throw new TypeError(
          `Cannot create the agent: "${name}" has a tool that was not made by tool(); expected tool()`,
        );
      }
      const other = from.get(tool.name);
      if (other) {
        const who = other === name ? `"${name}" has two tools` : `"${other}" and "${name}" both have a tool`;
        throw new TypeError(`Cannot create the agent: ${who} "${tool.name}"; rename one`);
      }
      from.set(tool.name, name);
    }
    return tools;
  });
}
