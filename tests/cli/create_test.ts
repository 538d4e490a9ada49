import { main, type Terminal } from "@jizai/jizai/cli";
import { assertEquals, assertRejects } from "@std/assert";
import { gzipSync } from "node:zlib";
import { unpack } from "../../src/cli/unpack.ts";
import { version } from "../../src/cli/version.ts";

/** Runs a command without input, and returns its exit code and its output. */
async function ran(...args: readonly string[]): Promise<readonly [number, string]> {
  let screen = "";
  const terminal: Terminal = {
    write: (text) => void (screen += text),
    ask: () => Promise.resolve(undefined),
    onInterrupt() {},
    close() {},
  };
  return [await main(args, terminal), screen];
}

/** Returns an archive with one file. */
function archive(path: string, text: string): Uint8Array {
  const bytes = new Uint8Array(2048);
  const write = (offset: number, field: string) => bytes.set(new TextEncoder().encode(field), offset);
  write(0, path);
  write(124, text.length.toString(8).padStart(11, "0"));
  write(156, "0");
  write(512, text);
  return gzipSync(bytes);
}

Deno.test("create depends on the version of this package", async () => {
  const config = JSON.parse((await Deno.readTextFile("deno.json")).replace(/^\s*\/\/.*$/gm, ""));
  assertEquals(version, config.version);
});

Deno.test("create rejects a name that the registries reject", async () => {
  for (const name of ["My-Agent", "my agent", "-agent", "7up", "my--agent", "agent_"]) {
    const [code, screen] = await ran("create", "--", name);
    assertEquals([code, screen], [
      1,
      `Cannot create "${name}": expected a name of lower-case letters, digits and hyphens, such as my-agent\n`,
    ]);
  }
});

Deno.test("create rejects an unknown template and names the others", async () => {
  assertEquals(await ran("create", "my-agent", "--template", "toString"), [
    1,
    'Cannot create from the template "toString": expected one of node, deno, workers, durable-objects, middleware\n',
  ]);
});

Deno.test("create rejects a package that is not a tarball", async () => {
  const create = ["create", "my-agent", "--template", "node", "--package"];
  assertEquals(await ran(...create, "nowhere.tgz"), [
    1,
    'Cannot use the package "nowhere.tgz": it is not readable\n',
  ]);
  assertEquals(await ran(...create, "deno.json"), [
    1,
    'Cannot use the package "deno.json": expected a tarball, as npm pack makes it\n',
  ]);
});

Deno.test("a tarball is unpacked only into its folder", async () => {
  for (const path of ["package/../../escaped.txt", "/etc/escaped.txt", "other/escaped.txt"]) {
    await assertRejects(
      () => unpack(archive(path, "text"), "tests"),
      Error,
      `Cannot unpack "${path}": expected a path in "package/"`,
    );
  }
  await assertRejects(() => unpack(gzipSync(new Uint8Array(1024)), "tests"), Error, "the tarball has no files");
});
