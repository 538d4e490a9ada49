import { assert, assertEquals } from "@std/assert";

/** Bundles one of the programs that `deno task size` measures. */
async function bundled(name: string): Promise<string> {
  const args = ["bundle", "--quiet", "--platform", "browser", `tests/bench/bundles/${name}`];
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args }).output();
  assert(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

Deno.test("an agent that is not served contains no error class of the server and of the wires", async () => {
  const served = ["RequestError", "RecordError", "ResumeTokenError", "ShapeError"];
  const program = await bundled("run.ts");
  assertEquals(served.filter((name) => program.includes(`"${name}"`)), []);
  const server = await bundled("served.ts");
  assertEquals(served.filter((name) => !server.includes(`"${name}"`)), []);
});

Deno.test("a program that does not create the tables of its database does not contain their schema", async () => {
  for (const name of ["features/sqlite.ts", "features/postgres.ts", "features/d1.ts"]) {
    assert(!(await bundled(name)).includes("CREATE TABLE"), name);
  }
});
