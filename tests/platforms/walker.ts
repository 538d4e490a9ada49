/**
 * A program that runs legs of runs: each arrives as a line on its standard input, and its outcome is written to the standard output.
 *
 * @module
 */
import { linesOf } from "../../middleware/foreign_hooks/picoclaw/rpc_hooks/lines.ts";
import { walk } from "../support/random_agent/legs.ts";

for await (const line of linesOf(Deno.stdin.readable.values(), Infinity)) {
  console.log(JSON.stringify(await walk(JSON.parse(line))));
}
