/**
 * Profiles one load, and prints its table.
 *
 * @module
 */
import type { Load } from "../kit/load.ts";
import { profiled } from "../profiles/profile.ts";
import { profileTable } from "../profiles/table.ts";

/** Only the part that is profiled is imported. */
const loads: Readonly<Record<string, () => Promise<Load>>> = {
  posts: async () => (await import("../parts/posts.ts")).postLoad(),
  turns: async () => (await import("../parts/turns.ts")).turnLoad(),
  turns_beneath: async () => (await import("../parts/middleware.ts")).turnsBeneath(),
  calls: async () => (await import("../parts/calls.ts")).callLoad(),
  calls_beneath: async () => (await import("../parts/middleware.ts")).callsBeneath(),
  deltas: async () => (await import("../parts/deltas.ts")).batchedLoad(),
  crowd: async () => (await import("../parts/crowd.ts")).crowdLoad(),
};

const load = await loads[Deno.args[0] ?? ""]?.();
if (!load) throw new TypeError(`Cannot profile "${Deno.args[0]}": expected one of ${Object.keys(loads).join(", ")}`);
console.log(profileTable(load, await profiled(load)));
