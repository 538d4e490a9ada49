import { assert } from "@std/assert";
import { buildPage, target } from "../support/page_bundle.ts";

Deno.test("deno task playground reproduces the committed bundle of the page", async () => {
  const isCurrent = await Deno.readTextFile(target) === await buildPage();
  assert(isCurrent, `Run \`deno task playground\`, and commit ${target}`);
});
