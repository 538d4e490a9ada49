// Serves a Worker with a D1 database in miniflare, and prints its address. The second argument is more options as JSON. Ends when the standard input ends.
import { existsSync } from "node:fs";
import { Miniflare } from "npm:miniflare@4.20260730.0";

if (existsSync("/dev/shm")) Deno.env.set("TMPDIR", "/dev/shm"); // temporary databases need no disk
const [script, options] = Deno.args;
const miniflare = new Miniflare({
  modules: [{ type: "ESModule", path: "worker.js", contents: await Deno.readTextFile(script) }],
  d1Databases: ["DB"],
  compatibilityDate: "2026-07-01",
  port: 0,
  ...JSON.parse(options),
});
console.log(String(await miniflare.ready));
for await (const _ of Deno.stdin.readable);
await miniflare.dispose();
