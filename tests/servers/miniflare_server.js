// Serves a Worker with a D1 database in miniflare, and prints its address. The second argument is more options as JSON. Ends when the standard input ends.
import { existsSync } from "node:fs";
import { convertV4MiniflareOptions, Miniflare } from "npm:miniflare@5.20261117.0-beta";

if (existsSync("/dev/shm")) Deno.env.set("TMPDIR", "/dev/shm"); // temporary databases need no disk
const [script, options] = Deno.args;
const miniflare = new Miniflare(convertV4MiniflareOptions({
  modules: [{ type: "ESModule", path: "worker.js", contents: await Deno.readTextFile(script) }],
  d1Databases: ["DB"],
  compatibilityDate: "2026-11-17",
  port: 0,
  ...JSON.parse(options),
}));
console.log(String(await miniflare.ready));
for await (const _ of Deno.stdin.readable);
await miniflare.dispose();
