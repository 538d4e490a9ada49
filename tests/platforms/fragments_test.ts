/**
 * The parts of the guides that a reader pastes and no test executes: they compile.
 */
import { assertEquals } from "@std/assert";
import { filesIn } from "../support/source.ts";
import { folder } from "./folder.ts";

/** Packages of which this repository has no types: what their programs look like is said by their own pages. */
const foreign =
  /from "(@ag-ui\/|@ai-sdk\/|@anthropic-ai\/|@langchain\/|@opentelemetry\/sdk-node|@tanstack\/|langchain|openai")/;

Deno.test("each fragment of a guide compiles, alone or after the first program of its page", async () => {
  await using disk = await folder();
  const root = `${Deno.cwd()}/examples/guides`;
  const pages = (await filesIn("examples/guides")).filter((path) => path.endsWith(".md"));
  const left: string[] = [];
  let count = 0;
  for (const page of pages) {
    const blocks = [...(await Deno.readTextFile(page)).matchAll(/^ *```ts( ignore)?\n([^]*?)^ *```$/gm)];
    const [program = ""] = blocks.flatMap(([, ignored, text = ""]) => ignored ? [] : [text]);
    for (const fragment of blocks.flatMap(([, ignored, text = ""]) => ignored ? [text] : [])) {
      if (foreign.test(fragment)) {
        left.push(page.slice("examples/guides/".length));
        continue;
      }
      const isWhole = /^import (?!type ).* from "(?!node:)/m.test(fragment);
      const place = `${disk.path}/${count++}`;
      await Deno.mkdir(place);
      const withModels = (text: string) => text.replaceAll(/"\.{1,2}\/(model|persistence)\.ts"/g, `"${root}/$1.ts"`);
      await Deno.writeTextFile(`${place}/agent.ts`, withModels(isWhole ? program : `${program}\n${fragment}`));
      await Deno.writeTextFile(`${place}/main.ts`, isWhole ? withModels(fragment) : "");
    }
  }
  const args = ["check", "--quiet", "--config", "deno.json", disk.path];
  const { stderr } = await new Deno.Command(Deno.execPath(), { args, env: { NO_COLOR: "1" } }).output();
  assertEquals(new TextDecoder().decode(stderr), "");
  assertEquals(count > 3, true);
  assertEquals(left.toSorted(), [
    "ag_ui.md",
    "from/ai_sdk.md",
    "from/claude_hooks.md",
    "from/langchain.md",
    "from/tanstack_ai.md",
    "openai_clients.md",
    "opentelemetry.md",
  ]);
});
