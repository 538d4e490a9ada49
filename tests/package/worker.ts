/**
 * Runs the checks of the installed package in a Worker.
 *
 * @module
 */
import { run } from "./checks.ts";

async function answer(): Promise<Response> {
  return new Response((await run()).join("\n"));
}

export default { fetch: answer };
