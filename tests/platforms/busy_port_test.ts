import { assertEquals } from "@std/assert";
import { commandOf } from "./program.ts";

for (const task of ["start", "start:kv"]) {
  Deno.test(`deno task ${task} prints one line if its port is in use`, async () => {
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr;
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: await commandOf(task),
      env: { PORT: String(port), HOST: "127.0.0.1", KV_PATH: ":memory:" },
    }).output();
    const message = `Cannot serve on port ${port}: another program uses it; set PORT to another port\n`;
    assertEquals([code, new TextDecoder().decode(stderr)], [1, message]);
  });
}
