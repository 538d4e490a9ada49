import { assertEquals } from "@std/assert";
import { commandOf, linesOf } from "./program.ts";
import { killing } from "./killing.ts";

/** Sends GET /health with a `Host`, and returns the status. */
async function statusFor(host: string, port: number): Promise<number> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const request = `GET /health HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`;
  await connection.write(new TextEncoder().encode(request));
  const buffer = new Uint8Array(64);
  const read = await connection.read(buffer) ?? 0;
  return Number(/^HTTP\/1\.1 (\d+)/.exec(new TextDecoder().decode(buffer.subarray(0, read)))?.[1]);
}

for (const task of ["start", "start:kv"]) {
  Deno.test(`deno task ${task} serves no other host than this machine`, async () => {
    const process = new Deno.Command(Deno.execPath(), {
      args: await commandOf(task),
      env: { PORT: "0", HOST: "127.0.0.1", KV_PATH: ":memory:", NO_COLOR: "1" },
      stdout: "piped",
    }).spawn();
    const kill = killing(process);
    const lines = linesOf(process.stdout);
    const { value = "" } = await lines.next();
    const port = Number(/http:\/\/127\.0\.0\.1:(\d+)/.exec(value)?.[1]);
    const hosts = ["localhost", `localhost:${port}`, "LOCALHOST", "127.0.0.1", `127.0.0.1:${port}`, "[::1]:80"];
    const foreign = ["evil.com", `evil.com:${port}`, "localhost.evil.com", "127.0.0.1.evil.com", "localhost.", "[::2]"];
    const statuses = async (names: readonly string[]) =>
      await Promise.all(names.map(async (name) => [name, await statusFor(name, port)]));
    assertEquals(await statuses(hosts), hosts.map((name) => [name, 200]));
    assertEquals(await statuses(foreign), foreign.map((name) => [name, 403]));
    await kill();
    await lines.return(undefined);
  });
}
