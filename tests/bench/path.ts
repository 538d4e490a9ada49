/**
 * Prints how many files and functions of `src/` one request executes when an agent is served: a text answer, and a run with two calls. V8 counts them, once
 * the code is warm. `deno task path functions` names them. Also prints the hops from a route to `start()`, how many lines the product
 * has, how many files a reader of `src` and `middleware` meets, how long they are, and how many partial copies of types `src/core` has. `deno task path guard` exits with 1 only if a number has grown.
 *
 * @module
 */
import { agent, type Model, type ModelEvent, serve } from "@jizai/jizai";
import { body, drain } from "./kit/floor.ts";
import { inspect } from "./kit/inspector.ts";
import { guard, type Guarded } from "./kit/guard.ts";
import { hopsToStart } from "./kit/hops.ts";
import { calling } from "./kit/load.ts";
import { type Measure, report } from "./kit/measure.ts";
import { median } from "./kit/stopwatch.ts";
import { withTool } from "./kit/tools.ts";
import { linesOfFiles, partialCopies, read } from "../support/source.ts";

const source = new URL("../../src/", import.meta.url).href;

/** The functions that a request executes, by file. */
type Path = ReadonlyMap<string, readonly string[]>;

/** The part of V8's coverage that is read. */
interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly functionName: string;
      readonly ranges: readonly { readonly count: number }[];
    }[];
  }[];
}

await inspect("Profiler.enable");

const answer: readonly ModelEvent[] = [{ type: "text", text: "Hello!" }, { type: "finish", reason: "stop" }];
const answering: Model = {
  id: "answering",
  async *stream() {
    yield answer;
  },
};
const text = await pathOf(answering);
const calls = await pathOf(calling(2));
const hops = await hopsToStart();
const mostHops = Math.max(...Array.from(hops.values(), ({ length }) => length - 1));
const measures: readonly Guarded[] = [
  { what: "files of a text answer", figure: text.size, atMost: 36, ceiling: 56, unit: "files" },
  { what: "functions of a text answer", figure: functionsOf(text), ceiling: 403, unit: "functions" },
  { what: "files of a run with two calls", figure: calls.size, atMost: 42, ceiling: 65, unit: "files" },
  { what: "functions of a run with two calls", figure: functionsOf(calls), ceiling: 525, unit: "functions" },
  { what: "hops from a route to start()", figure: mostHops, atMost: 6, ceiling: 6, unit: "hops" },
];
if (Deno.args[0] === "guard") guard(measures, "tests/bench/path.ts");
else {
  list("A text answer", text);
  list("A run with two calls", calls);
  for (const [what, functions] of hops) {
    console.log(`From the route to start(), ${what}:\n  ${functions.join("\n  ")}\n`);
  }
  report([...measures, ...await shape()]);
}

/** Measures the files that a reader meets. */
async function shape(): Promise<readonly Measure[]> {
  const files = await linesOfFiles();
  const lines = [...files.values()];
  const [entry] = await read("mod.ts");
  const written = [...lines, entry?.text.trimEnd().split("\n").length ?? 0].reduce((sum, count) => sum + count);
  const copies = (await read("src/core")).flatMap(partialCopies);
  return [
    { what: "lines of src, middleware and mod.ts (62,090 at first)", figure: written, atMost: 58_090, unit: "lines" },
    { what: "files in src and middleware", figure: files.size, atMost: 330, unit: "files" },
    { what: "... lines, median", figure: median(lines), atLeast: 120, atMost: 250, unit: "lines" },
    { what: "... lines of the largest", figure: Math.max(...lines), atMost: 550, unit: "lines" },
    { what: "Pick<> of another module's type in src/core", figure: copies.length, atMost: 0, unit: "copies" },
  ];
}

/** Serves an agent, sends it requests until its code is warm, and returns the functions that one more request executes. */
async function pathOf(model: Model): Promise<Path> {
  const app = serve(agent({ ...withTool(), model }));
  const headers = { "content-type": "application/json" };
  const request = async () => drain((await app.request("/runs", { method: "POST", headers, body })).body);
  for (let warmUp = 0; warmUp < 10; warmUp++) await request();
  await inspect("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await request();
  const { result } = await inspect("Profiler.takePreciseCoverage") as Coverage; // as the protocol describes it
  await inspect("Profiler.stopPreciseCoverage");
  const executed = result.filter(({ url }) => url.startsWith(source)).map(({ url, functions }) => {
    const names = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0).map(({ functionName }) => functionName);
    return [url.slice(source.length), names] as const;
  });
  return new Map(executed.filter(([, names]) => names.length > 0).toSorted(([a], [b]) => a < b ? -1 : 1));
}

function functionsOf(path: Path): number {
  return [...path.values()].reduce((sum, names) => sum + names.length, 0);
}

function list(what: string, path: Path): void {
  console.log(`${what}:`);
  for (const [file, names] of path) {
    const named = Deno.args[0] === "functions" ? names.map((name) => name || "(anonymous)").join(" ") : names.length;
    console.log(`  ${file} ${named}`);
  }
  console.log();
}
