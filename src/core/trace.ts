/**
 * Traces: a `hook.acted` event for each hook, with the values that it changed, and each request to a model. An import of its own: `agent({ trace })`.
 *
 * @module
 */
import type { WrapHooks } from "./definition.ts";
import { expectJson } from "./lib/json.ts";
import type { Hook } from "./onion.ts";
import type { ModelContext } from "./points.ts";
import { engineOf } from "./run.ts";
import type { Scope } from "./scope.ts";
import type { Event, HookAct, HookChange, Point } from "../protocol/event.ts";
import type { Message } from "../protocol/message.ts";
export type { WrapHooks } from "./definition.ts";

// The values that a hook changed, as a client may see them.

/** Returns the values that a hook passes to `next()` in place of those of its context. */
function passedValues(ctx: object, change: object): readonly HookChange[] {
  return Object.entries(change).flatMap(([key, after]) => {
    if (key === "signal" || key === "emit") return [];
    const before: unknown = Reflect.get(ctx, key);
    if (key !== "request" && key !== "settings") return changeOf(key, before, after);
    const fields = Object.entries(Object(after));
    return fields.flatMap(([field, value]) => changeOf(`${key}.${field}`, Object(before)[field], value));
  });
}

/** Returns the change of one value. There is none if the value stays, or if the new one is undefined, which a point ignores. */
function changeOf(key: string, before: unknown, after: unknown): readonly HookChange[] {
  const [old, now] = [jsonOf(key, before), jsonOf(key, after)];
  if (old === now || now === undefined) return [];
  return [{ key, ...(old !== undefined && { before: JSON.parse(old) }), after: JSON.parse(now) }];
}

/** Returns the JSON of a value of a context. */
function jsonOf(key: string, value: unknown): string | undefined {
  try {
    const shown = shownValue(key.slice(key.lastIndexOf(".") + 1), value);
    expectJson("Cannot show a value", shown);
    return JSON.stringify(shown, (_, each) => each === Infinity ? "Infinity" : each);
  } catch {
    return '"[not JSON]"'; // where the value is used, it is refused by name
  }
}

/** Returns the part of a value that is JSON and no secret of the process or the provider. */
function shownValue(name: string, value: unknown): unknown {
  if (name === "model") return Object(value).id;
  if (!Array.isArray(value)) return value;
  if (name === "tools") return value.map(({ name, description }) => ({ name, description }));
  return name === "messages" || name === "transcript" ? value.map(withoutNotes) : value;
}

/** The fields of results that clients may see: not errors, and not the transcripts of runs. */
const shownFields =
  /^(type|status|reason|text|output|parts|finish|context|input|artifacts|questions?|messages|after|results)$/;

/** Returns the change of the result of a point. Of the result of a turn, the parts are those of its response. */
function changedResult(point: Point, before: unknown, after: unknown): readonly HookChange[] {
  const isRun = point === "session" || point === "subagent";
  const shown = (result: unknown) => {
    if (typeof result !== "object" || result === null) return undefined;
    const all = "response" in result ? { ...Object(result.response), ...result } : result;
    const isShown = (name: string, each: unknown) =>
      shownFields.test(name) && !(isRun && name === "messages") && each !== "result"; // the type that every result of a tool has
    const fields = Object.entries(all).filter(([name, each]) => isShown(name, each));
    return Object.fromEntries(
      fields.map(([name, each]) => [name, name === "parts" && Array.isArray(each) ? withoutMeta(each) : each]),
    );
  };
  return changeOf("result", shown(before), shown(after));
}

/** Returns what `read` returns, or nothing if a getter of a hook's value throws: where the value is used, it is refused by name. */
function unlessThrown(read: () => readonly HookChange[]): readonly HookChange[] {
  try {
    return read();
  } catch {
    return [];
  }
}

type HookActed = Extract<Event, { readonly type: "hook.acted" }>;

/** Returns changes as every mask of the agent has masked them. They are cut after that, because half a secret is not recognised. */
function shownChanges(
  event: HookActed,
  changes: readonly HookChange[],
  scope: Scope,
): readonly HookChange[] {
  const { maskers } = engineOf(scope.run).definition;
  const left = { characters: mostCharacters };
  return changes.slice(0, mostItems).flatMap((change) => {
    try {
      const masked = maskers.reduce<Event>((each, mask) => mask(each, scope), { ...event, changes: [change] });
      const { changes = [] } = masked as HookActed; // a mask keeps the type
      return changes.map((each) => shortChange(each, left));
    } catch {
      return [{ key: change.key, after: "[not shown: it cannot be masked]" }]; // of a wrong shape: where it is used, it is refused by name
    }
  });
}

// Long values: what is the same in both is left out, and the rest is cut.

/** The most characters of a text. */
const longestText = 2_000;
/** The most items of a list, and the most fields of an object. */
const mostItems = 50;
/** The characters that are shown on both sides of the part of a long text that differs. */
const around = 200;

/** The room that is left in an event. */
interface Room {
  characters: number;
}

/** Returns a change without the items at the start and the end of both lists that are the same, cut. Lists whose difference is masked stay. */
function shortChange({ key, before, after }: HookChange, left: Room): HookChange {
  const isCut = Array.isArray(before) && Array.isArray(after) &&
    sameItems(before, after) < Math.max(before.length, after.length);
  const start = isCut ? sameItems(before, after) : 0;
  const end = isCut ? sameItems(before.slice(start).reverse(), after.slice(start).reverse()) : 0;
  const rest = (value: unknown) => isCut && Array.isArray(value) ? value.slice(start, value.length - end) : value;
  const [old, now] = differing(rest(before), rest(after));
  return {
    key,
    ...(before !== undefined && { before: shortened(old, left) }),
    after: shortened(now, left),
    ...(start + end > 0 && { same: start + end }),
  };
}

/** Returns how many items two lists have in common at their start. */
function sameItems(some: readonly unknown[], others: readonly unknown[]): number {
  const index = some.findIndex((each, index) => JSON.stringify(each) !== JSON.stringify(others[index]));
  return index < 0 ? Math.min(some.length, others.length) : index;
}

/** Leaves out of two values most of what long texts at the same place have in common. */
function differing(before: unknown, after: unknown): readonly [unknown, unknown] {
  if (typeof before === "string" && typeof after === "string") return differingTexts(before, after);
  if (!isObject(before) || !isObject(after) || Array.isArray(before) !== Array.isArray(after)) return [before, after];
  const pairs = new Map(Object.entries(before).map(([key, value]) => [key, differing(value, after[key])]));
  return [
    rebuilt(before, Object.entries(before).map(([key, value]) => [key, pairs.get(key)?.[0] ?? value])),
    rebuilt(after, Object.entries(after).map(([key, value]) => [key, pairs.get(key)?.[1] ?? value])),
  ];
}

function differingTexts(before: string, after: string): readonly [string, string] {
  if (Math.max(before.length, after.length) <= longestText) return [before, after];
  const shortest = Math.min(before.length, after.length);
  let start = 0;
  while (start < shortest && before[start] === after[start]) start++;
  let end = 0;
  while (end < shortest - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const [from, left] = [Math.max(0, start - around), Math.max(0, end - around)];
  const cut = (text: string) => {
    const middle = text.slice(from, text.length - left).toWellFormed();
    return `${from > 0 ? `[${from} characters] …` : ""}${middle}${left > 0 ? `… [${left} characters]` : ""}`;
  };
  return [cut(before), cut(after)];
}

/** Returns a value with cut texts, and without the items and fields for which there is no room. */
function shortened(value: unknown, left: Room): unknown {
  if (typeof value === "string") {
    const length = Math.min(value.length, longestText + 3 * around, Math.max(0, left.characters));
    left.characters -= length;
    const omitted = value.length - length;
    return omitted === 0 ? value : `${value.slice(0, length).toWellFormed()}… [${omitted} characters]`;
  }
  if (!isObject(value)) return value;
  const entries = Object.entries(value);
  const kept = entries.slice(0, mostItems).flatMap(([key, each]) => {
    left.characters -= key.length;
    return left.characters > 0 ? [[key, shortened(each, left)] as const] : [];
  });
  const omitted = entries.length - kept.length;
  return rebuilt(value, omitted === 0 ? kept : [...kept, ["…", `[${omitted} more]`]]);
}

/** Returns a list or an object, as `like` is, with these items or fields. */
function rebuilt(like: object, entries: readonly (readonly [string, unknown])[]): unknown {
  return Array.isArray(like) ? entries.map(([, each]) => each) : Object.fromEntries(entries);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

// The events of hooks and of requests to a model.

/** Wraps a hook so that it emits `hook.acted` when it returns or throws. */
function traced<C extends Scope, D extends object, R>(
  point: Point,
  middleware: string,
  hook: Hook<C, D, R>,
): Hook<C, D, R> {
  return async (ctx, next) => {
    const start = performance.now();
    const engine = engineOf(ctx.run);
    const changed = new Set<string>();
    const changes: HookChange[] = [];
    let times = 0;
    let below: R | undefined;
    const keep = (result: R) => {
      below = result;
    };
    const spy = (change?: D): Promise<R> => {
      times++;
      for (const [key, value] of Object.entries(change ?? {})) if (value !== undefined) changed.add(key);
      if (change && engine.detailed) changes.push(...unlessThrown(() => passedValues(ctx, change)));
      const result = next(change);
      result.then(keep, () => {}); // a failure reaches the hook that awaits `result`
      return result;
    };
    let threw = true;
    let returned: R | undefined;
    try {
      returned = await hook(ctx, spy);
      threw = false;
      return returned;
    } finally {
      const did: HookAct[] = [];
      if (threw) did.push("threw");
      else if (times === 0) did.push("answered");
      else if (returned !== below) did.push("replaced");
      if (times > 1) did.push("retried");
      if (changed.size > 0) did.push("changed");
      const decided = decisionOf(returned);
      const ms = Math.round((performance.now() - start) * 1_000) / 1_000;
      if (engine.detailed && !threw && returned !== below) {
        changes.push(...unlessThrown(() => changedResult(point, below, returned)));
      }
      const event: HookActed = {
        type: "hook.acted",
        middleware,
        point,
        ...placeOf(point, ctx),
        did: did.length > 0 ? did : ["passed"],
        ...(changed.size > 0 && { changed: [...changed] }),
        ...(decided !== undefined && { decided }),
        ms,
      };
      ctx.emit(changes.length > 0 ? { ...event, changes: shownChanges(event, changes, ctx) } : event);
    }
  };
}

/** The most characters of the messages, or of the changes, in an event. A conversation is sent again with each request, and the log keeps each event. */
const mostCharacters = 20_000;

/** Emits `model.requested`. */
function requested({ run, emit, request, turn, attempt }: ModelContext): void {
  if (!engineOf(run).detailed) return;
  const { instructions, tools } = request;
  const messages = request.messages.map(withoutNotes);
  let omitted = messages.length;
  for (let left = mostCharacters; omitted > 0; omitted--) {
    left -= JSON.stringify(messages[omitted - 1]).length;
    if (left < 0) break;
  }
  emit({
    type: "model.requested",
    turn,
    attempt,
    instructions,
    messages: messages.slice(omitted),
    omitted,
    tools: tools.map(({ name, description, schema }) => ({ name, description, schema })),
  });
}

/** Returns a message without what its provider has signed or encrypted, which no hook can mask. */
function withoutNotes(message: Message): Message {
  if (message.role !== "assistant") return message;
  return { ...message, parts: withoutMeta(message.parts) };
}

function withoutMeta<P extends object>(parts: readonly P[]): readonly P[] {
  return parts.map((part) => "meta" in part ? { ...part, meta: null } : part);
}

/**
 * Makes each hook emit `hook.acted` when it returns or throws, with the values that it changed, and each request to a model `model.requested`. The values and
 * the requests are for developers: `serve()` leaves them out unless it has a `page`. They are masked by the hooks that mask events, such as `redact()`, and
 * cut after `redact()` has masked them. The clients of the run receive the events. Pass it to `agent({ trace })`.
 */
export const trace: WrapHooks = /* @__PURE__ */ Object.assign(traced, { requested });

/** Returns the turn and the call of a context, if it has them. */
function placeOf(point: Point, ctx: object): { readonly turn?: number; readonly call?: string } {
  const index = point === "turn" && "index" in ctx ? ctx.index : "turn" in ctx ? ctx.turn : undefined;
  const turn = typeof index === "number" ? { turn: index } : {};
  const call = "call" in ctx ? ctx.call : undefined;
  const id = typeof call === "object" && call !== null && "id" in call ? call.id : call;
  return typeof id === "string" ? { ...turn, call: id } : turn;
}

/** Returns the decision of an answer: its status or its type. */
function decisionOf(returned: unknown): string | undefined {
  if (typeof returned !== "object" || returned === null) return undefined;
  if ("status" in returned && typeof returned.status === "string") return returned.status;
  return "type" in returned && typeof returned.type === "string" ? returned.type : undefined;
}
