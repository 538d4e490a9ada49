import { assertEquals, assertStringIncludes } from "@std/assert";
import { folder } from "../platforms/folder.ts";
import { bundled } from "../platforms/workerd.ts";

/** The path of a file of this folder. */
const here = (name: string) => new URL(name, import.meta.url).pathname;

/** Lets a program of this folder read a lock of its own: Deno downloads everything in a lock, for each program it runs. */
function locked(name: string): readonly string[] {
  return ["--quiet", "--allow-all", "--no-config", "--lock", here(`${name}.lock`), "--frozen"];
}

/** Serves the Worker until it is disposed of. */
async function d1Server(path: string): Promise<AsyncDisposable & { request(path: string): Promise<Response> }> {
  const script = `${path}/worker.js`;
  await Deno.writeTextFile(script, await bundled("tests/servers/d1_worker.ts"));
  const args = ["run", ...locked("d1_server"), here("d1_server.js"), script, `${path}/d1`];
  const process = new Deno.Command(Deno.execPath(), { args, stdin: "piped", stdout: "piped" }).spawn();
  const output = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await output.read();
  const client = Deno.createHttpClient({ poolMaxIdlePerHost: 0 }); // miniflare closes idle connections
  return {
    request: (path) => fetch(new URL(path, value.trim()), { client }),
    async [Symbol.asyncDispose]() {
      client.close();
      await process.stdin.close();
      while (!(await output.read()).done);
      await process.status;
    },
  };
}

Deno.test("in miniflare, d1Store(), d1Log() and d1KeyValue() keep the laws, and one of 20 writers wins", async () => {
  await using disk = await folder();
  await using server = await d1Server(disk.path);
  const replies: Record<string, string> = {};
  for (const path of ["/store_laws", "/log_laws", "/key_value_laws", "/race"]) {
    replies[path] = await (await server.request(path)).text();
  }
  assertEquals(replies, { "/store_laws": "null", "/log_laws": "null", "/key_value_laws": "null", "/race": "[1]" });
  assertStringIncludes(await (await server.request("/without_schema")).text(), "no such table: jizai_session");
});

Deno.test("the adapters for libSQL keep the laws with @libsql/client, and those for SQLite with the driver libsql", async () => {
  await using disk = await folder();
  const laws = `${disk.path}/laws.js`;
  await Deno.writeTextFile(laws, await bundled("tests/servers/libsql_laws.ts"));
  const args = ["run", ...locked("libsql_program"), here("libsql_program.js"), await Deno.realPath(laws), disk.path];
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), { args }).output();
  const decoder = new TextDecoder();
  assertEquals([decoder.decode(stdout), decoder.decode(stderr)], ["ok\n", ""]);
});
