import { assertEquals } from "@std/assert";
import { folder } from "./folder.ts";
import { bundled, served } from "./workerd.ts";

const script = await bundled("tests/platforms/worker.ts");

for (const laws of ["journal_laws", "move_laws", "key_value_laws"]) {
  Deno.test(`in workerd, a Durable Object keeps the ${laws.replaceAll("_", " ")}`, async () => {
    await using disk = await folder();
    await using worker = await served(script, { className: "Keeper" }, disk.path);
    const response = await worker.request(`/${laws}`);
    assertEquals([response.status, await response.text()], [200, "null"]);
  });
}

Deno.test("in workerd, a Durable Object keeps its data after workerd was killed", async () => {
  await using disk = await folder();
  {
    await using worker = await served(script, { className: "Keeper" }, disk.path);
    assertEquals(await (await worker.request("/write")).json(), [1, { stored: true, last: 1 }]);
  }
  await using worker = await served(script, { className: "Keeper" }, disk.path);
  assertEquals(await (await worker.request("/read")).json(), [
    { id: "s", version: 1, messages: [{ role: "user", parts: [{ type: "text", text: "自在鉤" }] }] },
    { first: 1, lines: ["1"], last: 1, over: false, session: "r" },
  ]);
});
