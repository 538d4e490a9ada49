import { assertEquals } from "@std/assert";
import { folder } from "./folder.ts";
import { bundled, served } from "./workerd.ts";

Deno.test("in workerd, mods() runs mods that deny, fail, are late and stream", async () => {
  await using disk = await folder();
  await using worker = await served(
    await bundled("tests/platforms/mods_worker.ts"),
    { className: "Nothing" },
    disk.path,
  );
  const response = await worker.request("/");
  assertEquals(await response.json(), ["Hi", "call,call", "No.", "ran ls", "Done. true"]);
});
