/**
 * Makes the npm package, and creates a project that uses it, as long as no registry has the package. Takes the arguments of `jizai create`:
 *
 * ```sh
 * deno task create ../my-agent --template workers
 * ```
 *
 * @module
 */
import { main } from "../../src/cli/mod.ts";
import { openTerminal } from "../../src/cli/terminal.ts";
import { pack } from "./pack.ts";

const terminal = openTerminal();
Deno.exitCode = await main(["create", ...Deno.args, "--package", await pack()], terminal);
terminal.close();
