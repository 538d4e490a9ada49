/**
 * The tools that change files: `write_file` and `edit_file`.
 *
 * @module
 */
import { type AnyTool, type Scope, tool, type ToolExecutionContext } from "../../../mod.ts";
import { type Desk, textOf } from "./desk.ts";
import { input, text } from "./input.ts";
import { resolve, root } from "./path.ts";
import { replaced } from "./text.ts";

/** Makes the tools; `deskOf` gives each run its desk. */
export function writingTools<V>(deskOf: (scope: Scope<V>) => Desk): readonly AnyTool<V>[] {
  const writeFile = tool({
    name: "write_file",
    description:
      "Writes a text file, and the folders it is in where there are none yet. Whatever was in the file is gone.",
    input: input({ path: text("The file"), content: text("All that is to be in it") }),
    async execute({ path, content }, ctx: ToolExecutionContext<V>) {
      const change = await deskOf(ctx).change(resolve(root, path), () => content, ctx);
      return change === "add" ? "Created." : change ? "Replaced." : "It was like that already.";
    },
  });

  const editFile = tool({
    name: "edit_file",
    description: "Replaces a text in a file by another one. Several edits of one file are made one after another.",
    input: input({
      path: text("The file"),
      old: text("The text to replace: exactly as it is in the file, and with so much around it that it is there once"),
      new: text("What is to be in its place"),
    }),
    async execute({ path, old, new: by }, ctx: ToolExecutionContext<V>) {
      await deskOf(ctx).change(resolve(root, path), (before) => replaced(textOf(before), old, by), ctx);
      return "Edited.";
    },
  });

  return [writeFile, editFile];
}
