/**
 * An agent that edits files: it finds a word, corrects it, and continues in a folder that has its own instructions.
 * Its model follows a script. The files are in memory; replace `memoryFiles()` with `directory()` to keep them on disk.
 *
 * ```sh
 * deno run examples/workspace/main.ts
 * ```
 *
 * @module
 */
import { agent } from "@jizai/jizai";
import { instructions } from "@jizai/jizai/middleware/instructions";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { scripted } from "@jizai/jizai/model/scripted";

const files = {
  "AGENTS.md": "Write British English.",
  "README.md": "# Kettle\n\nIts color is red.\n",
  "docs/AGENTS.md": "End every sentence with a full stop.",
  "docs/boil.md": "Fill it, and wait for the color of the light to change\n",
};

/** Runs the agent. Returns one line per event, the corrected files, and the answer. */
export async function run(): Promise<string[]> {
  const kept = memoryFiles(files);
  const model = scripted(
    { calls: [["search_files", { path: ".", pattern: "\\bcolor\\b", regex: true }]] },
    {
      calls: [
        ["edit_file", { path: "README.md", old: "color", new: "colour" }],
        ["edit_file", { path: "docs/boil.md", old: "color", new: "colour" }],
        ["change_directory", { path: "docs" }],
      ],
    },
    { calls: [["edit_file", { path: "boil.md", old: "change\n", new: "change.\n" }]] },
    "It is British now, to the last full stop.",
  );
  const assistant = agent({
    model,
    instructions: "You correct what is written.",
    use: [workspace(kept), instructions(kept)],
  });

  const lines: string[] = [];
  const { events, result } = assistant.run("Correct these pages");
  for await (const event of events) {
    if (event.type === "instructions.loaded") lines.push(`Loaded ${event.path}.`);
    if (event.type === "file.changed") lines.push(`Changed ${event.path}.`);
    if (event.type === "cwd.changed") lines.push(`Went to ${event.to}.`);
  }
  for (const path of ["README.md", "docs/boil.md"]) {
    lines.push(`${path}: ${new TextDecoder().decode((await kept.read(path))?.bytes).trim()}`);
  }
  return [...lines, (await result).text];
}

if (import.meta.main) console.log((await run()).join("\n"));
