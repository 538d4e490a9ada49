/**
 * The command line as a program for every runtime.
 *
 * @module
 */
import { run } from "../../src/cli/mod.ts";

await run();
