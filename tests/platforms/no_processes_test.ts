import { assertEquals } from "@std/assert";
import { folder } from "./folder.ts";
import { bundled, served } from "./workerd.ts";

const absent = "this runtime has no processes; expected Deno, Node or Bun";

/** The errors of the middleware that start processes, and their causes. */
const expected: Readonly<Record<string, readonly string[]>> = {
  command_hooks: [`Cannot start "bash": ${absent}`, "The child_process.spawn method is not implemented"],
  rpc_hooks: [
    'Cannot start the hook "gate"',
    `Cannot start "gate": ${absent}`,
    "The child_process.spawn method is not implemented",
  ],
};

Deno.test("in workerd, the middleware that start processes say which runtimes have them", async () => {
  await using disk = await folder();
  const script = await bundled("tests/platforms/no_processes_worker.ts");
  await using worker = await served(script, { className: "Nothing" }, disk.path);
  for (const [name, messages] of Object.entries(expected)) {
    assertEquals(await (await worker.request(`/${name}`)).json(), messages);
  }
});
