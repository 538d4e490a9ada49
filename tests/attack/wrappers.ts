/**
 * Random middleware around a protected file: wrappers that do something to calls, as applications do.
 *
 * @module
 */
import { allow, type Middleware, only, text, type ToolContext, when } from "@jizai/jizai";
import { cache } from "@jizai/jizai/middleware/cache";
import { human } from "@jizai/jizai/middleware/human";
import { optional } from "@jizai/jizai/middleware/optional";
import { retry } from "@jizai/jizai/middleware/retry";
import { serial } from "@jizai/jizai/middleware/serial";
import { timeout } from "@jizai/jizai/middleware/timeout";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import type { Chance } from "../support/seeded.ts";

/** The content of the protected file. */
export const content = "the content of the protected file";

/** Paths, most of which name the protected file. */
const spellings = [
  ...["secret.txt", "secret.txt", "secret.txt"],
  "./secret.txt",
  "a/../secret.txt",
  ".//secret.txt",
  "../secret.txt",
  "open.txt",
] as const;

/** Returns an input with a random path. */
export function randomPath({ one }: Chance): { readonly path: string } {
  return { path: one(spellings) };
}

/** Returns true for an input with the canonical path of the protected file. */
export function isSecret(input: unknown): boolean {
  return JSON.stringify(input)?.includes('"secret.txt"') === true;
}

/** Returns true for a call that reads the protected file under its canonical path. */
export function isRead({ name, input }: Pick<ToolContext, "name" | "input">): boolean {
  return name === "read_file" && isSecret(input);
}

type Make = (chance: Chance) => Middleware;

/** Wrappers that leave the inputs of calls to the guards and to people. */
const keeping: readonly [Make, ...Make[]] = [
  () => retry({ attempts: 2 }),
  () => timeout(5_000),
  () => serial(),
  () => ({ name: "rename", tool: (ctx, next) => next(ctx.name === "peek" ? { name: "read_file" } : {}) }),
  () => cache({ keyValue: memoryKeyValue(), model: false, tools: ["read_file"] }),
  (chance) => human(() => chance.one([true, false, { allow: true, input: randomPath(chance) }])),
  () => ({
    name: "answer",
    tool: (ctx, next) => ctx.name === "nothing" ? Promise.resolve(text("answered")) : next(),
  }),
  ({ one }) => {
    const group = one<"alone" | "parallel">(["alone", "parallel"]);
    return { name: "groups", groups: () => group };
  },
  () => ({ name: "permit", approval: (_, next) => next().then(() => allow()) }),
  () => ({ name: "permit_at_once", approval: () => Promise.resolve(allow()) }),
  () => ({ name: "permit_failures", approval: (_, next) => next().catch(() => allow()) }),
  (chance) => {
    const input = randomPath(chance);
    return { name: "permit_edited", approval: () => Promise.resolve({ type: "allow", input }) };
  },
  (chance) => {
    const input = randomPath(chance);
    return {
      name: "edit",
      approval: (_, next) => next().then((inner) => inner.type === "deny" ? inner : { type: "allow", input }),
    };
  },
];

/** Wrappers that change the inputs of calls at `tool`, or answer in place of the tool. */
const overriding: readonly Make[] = [
  () => ({ name: "remember", tool: (ctx, next) => isRead(ctx) ? Promise.resolve(text(content)) : next() }),
  (chance) => {
    const input = randomPath(chance);
    return {
      name: "rename_and_change",
      tool: (ctx, next) => next(ctx.name === "peek" ? { name: "read_file", input } : {}),
    };
  },
  (chance) => {
    const input = randomPath(chance);
    return { name: "change", tool: (ctx, next) => next(ctx.tool ? { input: { ...Object(ctx.input), ...input } } : {}) };
  },
];

/** Creates a random middleware, sometimes limited by up to `depth` conditions. With `keepsInputs`, it overrides no call at `tool`. */
export function wrapper(chance: Chance, depth: number, keepsInputs: boolean): Middleware {
  const { below, one } = chance;
  if (depth === 0 || below(5) > 0) return one(keepsInputs ? keeping : [...keeping, ...overriding])(chance);
  const inner = wrapper(chance, depth - 1, keepsInputs);
  return one<() => Middleware>([
    () => when(() => below(2) === 0 || Promise.resolve(true), inner),
    () => optional(inner),
    () => callsOnly(inner),
  ])();
}

/** Limits a wrapper to some tools. */
function callsOnly({ tool, approval, execute }: Middleware): Middleware {
  return only("read_file|peek", {
    name: "only",
    ...(tool && { tool }),
    ...(approval && { approval }),
    ...(execute && { execute }),
  });
}
