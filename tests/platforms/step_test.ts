import { assertEquals } from "@std/assert";
import { folder } from "./folder.ts";

/** Runs the program, which dies at a place of its tool. Returns what it prints; an empty text if it dies. */
async function run(path: string, place: string): Promise<string> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-check",
      "--no-prompt",
      "--allow-read",
      "--allow-write",
      "--allow-run",
      "tests/platforms/step_program.ts",
      path,
      place,
    ],
    stderr: "inherit",
  }).output();
  return new TextDecoder().decode(stdout).trim();
}

Deno.test("a process that is killed between two steps, and in one, runs no step again whose value is stored", async () => {
  await using disk = await folder();
  assertEquals(await run(disk.path, "after charge"), "");
  assertEquals(await run(disk.path, "in mail"), "");
  const results = JSON.parse(await run(disk.path, "nowhere"));
  const parts = [{ type: "text", text: "id of charge, id of mail" }];
  assertEquals(results, [{ callId: results[0].callId, name: "order", status: "ok", parts }]);
  const effects = await Deno.readTextFile(`${disk.path}/effects`);
  assertEquals(effects.trim().split("\n"), ["charge 1:0:charge", "mail 1:0:mail", "mail 1:0:mail"]);
});
