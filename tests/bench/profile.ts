/**
 * Breaks down the measures of `deno task bench` that are hardest to meet. Each load runs in a process of its own, where V8 profiles its time and its memory by
 * folder and by function. The memory of an open stream is listed by constructor. `deno task profile posts streams` profiles those only.
 *
 * @module
 */
import { streamers } from "./kit/crowd.ts";
import { deno } from "./kit/processes.ts";
import { heldTable } from "./profiles/table.ts";

const loads = ["posts", "turns", "turns_beneath", "calls", "calls_beneath", "deltas", "crowd"];
const all = [...loads, "streams"];

const chosen = Deno.args.length > 0 ? Deno.args : all;
const unknown = chosen.filter((name) => !all.includes(name));
if (unknown.length > 0) {
  throw new TypeError(`Cannot profile ${unknown.join(", ")}: expected some of ${all.join(", ")}`);
}
for (const name of chosen) console.log(`${name === "streams" ? await openStreams() : await run("profile.ts", name)}\n`);

/** Compares what an open stream holds: of the floor, of a run without HTTP, and of a served agent. */
async function openStreams(): Promise<string> {
  const held: [string, ReadonlyMap<string, number>][] = [];
  for (const streamer of streamers) held.push([streamer, new Map(JSON.parse(await run("open_streams.ts", streamer)))]);
  return heldTable("bytes of an open stream", held);
}

/** Runs a program in a process of its own, and returns its output. */
async function run(name: string, argument: string): Promise<string> {
  const path = new URL(`programs/${name}`, import.meta.url).pathname;
  return (await deno(["run", "--no-prompt", "--allow-sys", path, argument])).trimEnd();
}
