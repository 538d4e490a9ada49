/**
 * Prints what an agent with one tool weighs when it is served and bundled for Workers, how long that takes to start, and what the client and each wire weigh.
 * Fails where one of them is above its budget.
 *
 * What Hono and Zod weigh is found by bundling, in the same way, a file that makes the same use of them and imports nothing else. What lies
 * beyond it is Jizai. The start is the time in which a fresh process that has the bundle in memory compiles it, runs it, and answers a first
 * request: the shortest of several, since all that is added to it is disturbance. Deno's own loading of modules is left out, as a Worker has
 * another.
 *
 * @module
 */
import { isMet, type Measure, table } from "./measure.ts";

const starts = 15;

const total = await zipped(await bundled("served.ts", "esm"));
const base = await zipped(await bundled("alone.ts", "esm"));
const client = await zipped(await bundled("client.ts", "esm"));
const wires: Measure[] = [];
for (const name of ["ai_sdk", "ai_sdk_messages", "chat_completions", "responses", "ag_ui"]) {
  const figure = await zipped(await bundled(`wires/${name}.ts`, "esm")) - total;
  wires.push({ what: `the wire ${name}, gzip`, figure, budget: 3, unit: "KB" });
}
const script = { served: await bundled("served.ts", "cjs"), alone: await bundled("alone.ts", "cjs") };
const start = { served: Infinity, alone: Infinity };
for (let round = 0; round < starts; round++) {
  start.served = Math.min(start.served, await started(script.served));
  start.alone = Math.min(start.alone, await started(script.alone));
}

const measures: readonly Measure[] = [
  { what: "bundle beyond Hono and Zod, gzip", figure: total - base, budget: 15, unit: "KB" },
  { what: "bundle in all, gzip", figure: total, budget: 45, unit: "KB" },
  { what: "client, gzip", figure: client, budget: 2, unit: "KB" },
  ...wires,
  {
    what: "start beyond Hono and Zod",
    figure: start.served - start.alone,
    budget: 10,
    unit: "ms",
  },
];
console.log(table(measures));
if (!measures.every(isMet)) Deno.exit(1);

/** A file of `bundles/` as it would be deployed. */
async function bundled(name: string, format: "esm" | "cjs"): Promise<string> {
  const path = new URL(`bundles/${name}`, import.meta.url).pathname;
  return await output(["bundle", "--quiet", "--platform", "browser", "--format", format, "--minify", path]);
}

/** Kilobytes of `text`, compressed. */
async function zipped(text: string): Promise<number> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  return (await new Response(stream).arrayBuffer()).byteLength / 1_024;
}

/** Milliseconds until a bundle answers in a process of its own. */
async function started(script: string): Promise<number> {
  const code = `
    const script = await new Response(Deno.stdin.readable).text();
    const module = { exports: {} };
    const start = performance.now();
    new Function("module", "exports", script)(module, module.exports);
    const { status } = await module.exports.default.request("/health");
    if (status !== 200) throw new Error("Cannot start: the answer was " + status);
    console.log(performance.now() - start);
  `;
  return Number(await output(["eval", code], script));
}

/** What Deno prints. */
async function output(args: readonly string[], input = ""): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), { args: [...args], stdin: "piped", stdout: "piped" }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input));
  await writer.close();
  const { success, stdout } = await child.output();
  if (!success) throw new Error(`Cannot measure: deno ${args[0]} failed`);
  return new TextDecoder().decode(stdout);
}
