import { assertEquals } from "@std/assert";
import { placeOf } from "./place.ts";

Deno.test("code is placed by its folder, its package, or the runtime's module", () => {
  const root = new URL("../../../", import.meta.url).href;
  assertEquals(placeOf(`${root}src/core/call.ts`), { folder: "src/core", file: "src/core/call.ts" });
  assertEquals(placeOf("src/core/call.ts"), placeOf(`${root}src/core/call.ts`));
  assertEquals(placeOf("mod.ts"), { folder: "", file: "mod.ts" });
  const cache = "../../home/.cache/deno/npm/registry.example";
  assertEquals(placeOf(`${cache}/hono/4.13.1/dist/url.js`), { folder: "hono", file: "hono/dist/url.js" });
  assertEquals(placeOf(`${cache}/@a/b/1.0.0/c.js`), { folder: "@a/b", file: "@a/b/c.js" });
  assertEquals(placeOf("node_modules/zod/core.js"), { folder: "zod", file: "zod/core.js" });
  const nested = "node_modules/.deno/zod@4.1.0/node_modules/zod/core.js";
  assertEquals(placeOf(nested), { folder: "zod", file: "zod/core.js" });
  assertEquals(placeOf("ext:deno_web/06_streams.js"), { folder: "ext:deno_web", file: "ext:deno_web/06_streams.js" });
  assertEquals(placeOf("node:buffer"), { folder: "node:buffer", file: "node:buffer" });
});
