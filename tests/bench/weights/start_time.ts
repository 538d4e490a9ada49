/**
 * The time that a deployed bundle takes to start.
 *
 * @module
 */
import { bundled } from "./bundle.ts";
import { deno } from "../kit/processes.ts";

/**
 * Returns the milliseconds that one bundle takes to start beyond another: the shortest of several starts of each, since a disturbance only adds to it.
 */
export async function startTime(name: string, without: string): Promise<number> {
  const script = await bundled(name, ["--format", "cjs"]);
  const base = await bundled(without, ["--format", "cjs"]);
  const shortest = { script: Infinity, base: Infinity };
  for (let round = 0; round < 15; round++) {
    shortest.script = Math.min(shortest.script, await started(script));
    shortest.base = Math.min(shortest.base, await started(base));
  }
  return shortest.script - shortest.base;
}

/**
 * Returns the milliseconds in which a fresh process compiles a bundle that it has in memory, runs it, and answers a first request. Deno's own loading of
 * modules is left out, as a Worker loads them differently.
 */
async function started(script: string): Promise<number> {
  const code = `
    const script = await new Response(Deno.stdin.readable).text();
    const module = { exports: {} };
    const start = performance.now();
    new Function("module", "exports", script)(module, module.exports);
    const { status } = await module.exports.default.request("/health");
    if (status !== 200) throw new Error("Cannot measure the start: GET /health answered " + status);
    console.log(performance.now() - start);
  `;
  return Number(await deno(["eval", code], script));
}
