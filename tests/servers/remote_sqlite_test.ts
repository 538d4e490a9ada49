import { assertEquals, assertStringIncludes } from "@std/assert";
import { folder } from "../platforms/folder.ts";
import { bundled } from "../platforms/workerd.ts";
import { miniflare } from "./miniflare.ts";
import { programArguments } from "./server_program.ts";

Deno.test("in miniflare, d1Store() and d1KeyValue() keep the laws, and one of 20 writers wins", async () => {
  await using disk = await folder();
  await using server = await miniflare("tests/servers/d1_worker.ts", disk.path);
  const replies: Record<string, string> = {};
  for (const path of ["/journal_laws", "/move_laws", "/key_value_laws", "/race"]) {
    replies[path] = await (await server.request(path)).text();
  }
  assertEquals(replies, {
    "/journal_laws": "null",
    "/move_laws": "null",
    "/key_value_laws": "null",
    "/race": "[1]",
  });
  assertStringIncludes(await (await server.request("/without_schema")).text(), "no such table: jizai_journal");
});

Deno.test("the adapters for libSQL keep the laws with @libsql/client, and those for SQLite with the driver libsql", async () => {
  await using disk = await folder();
  const laws = `${disk.path}/laws.js`;
  await Deno.writeTextFile(laws, await bundled("tests/servers/libsql_laws.ts"));
  const args = [...programArguments("libsql_program"), await Deno.realPath(laws), disk.path];
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), { args }).output();
  const decoder = new TextDecoder();
  assertEquals([decoder.decode(stdout), decoder.decode(stderr)], ["ok\n", ""]);
});
