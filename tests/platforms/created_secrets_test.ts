import { main } from "@jizai/jizai/cli";
import { assertEquals } from "@std/assert";

for (const [template, secrets] of [["node", ".env"], ["durable-objects", ".dev.vars"]] as const) {
  Deno.test(`create lets only its user read the secrets of a project for ${template}`, async () => {
    await Deno.mkdir("dist", { recursive: true });
    const folder = await Deno.makeTempDir({ dir: "dist" });
    const written: string[] = [];
    const terminal = {
      write: (text: string) => void written.push(text),
      ask: () => Promise.resolve(undefined),
      onInterrupt() {},
      close() {},
    };
    assertEquals([await main(["create", `${folder}/my-agent`, "--template", template], terminal), written.length], [
      0,
      1,
    ]);
    const modeOf = async (name: string) => ((await Deno.stat(`${folder}/my-agent/${name}`)).mode ?? 0) & 0o777;
    assertEquals([await modeOf(secrets), await modeOf("README.md") & 0o400], [0o600, 0o400]);
    await Deno.remove(folder, { recursive: true });
  });
}
