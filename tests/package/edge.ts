/**
 * Runs the checks of the installed package in the Edge runtime, whose scripts listen to events.
 *
 * @module
 */
import { run } from "./checks.ts";

addEventListener("fetch", (event) => {
  // the type of Deno's global scope has no such event
  const { respondWith } = event as Event & { respondWith(response: Promise<Response>): void };
  respondWith.call(event, run().then((lines) => new Response(lines.join("\n"))));
});
