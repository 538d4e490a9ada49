// Serves a Worker with a D1 database in miniflare, and prints its address. Ends when the standard input ends.
import { Miniflare } from "npm:miniflare@4.20260730.0";

const [script, folder] = Deno.args;
const miniflare = new Miniflare({
  modules: true,
  script: await Deno.readTextFile(script),
  d1Databases: ["DB"],
  d1Persist: folder,
  compatibilityDate: "2026-07-01",
  port: 0,
});
console.log(String(await miniflare.ready));
for await (const _ of Deno.stdin.readable);
await miniflare.dispose();
