/**
 * Defines the tools that change files: `write_file` and `edit_file`.
 *
 * @module
 */
import * as z from "zod";
import { type AnyTool, type Scope, tool, type ToolExecutionContext } from "../../../mod.ts";
import { type FileEditor, textOf } from "./file_editor.ts";
import { resolve, root, shown } from "./path.ts";
import { replaceOnce } from "./text.ts";

/** Creates the tools; `editorOf` returns the editor of a run. */
export function writingTools<V>(editorOf: (scope: Scope<V>) => FileEditor): readonly AnyTool<V>[] {
  const writeFile = tool({
    name: "write_file",
    description: "Writes a text file, and creates its folders. Replaces the previous content of the file.",
    input: z.object({
      path: z.string().describe("The file"),
      content: z.string().describe("The whole content of the file"),
    }),
    async execute({ path, content }, ctx: ToolExecutionContext<V>) {
      const change = await editorOf(ctx).change(resolve(root, path), () => content, ctx);
      return change === "add" ? "Created." : change ? "Replaced." : "Unchanged: the file has this content already.";
    },
  });

  const editFile = tool({
    name: "edit_file",
    description: "Replaces a text in a file with another text. Several edits of one file run in order.",
    input: z.object({
      path: z.string().describe("The file"),
      old: z.string().describe("The text to replace, exactly as in the file, and long enough to occur once"),
      new: z.string().describe("The text to insert instead"),
    }),
    async execute({ path, old, new: by }, ctx: ToolExecutionContext<V>) {
      const file = resolve(root, path);
      const edit = (before: Parameters<typeof textOf>[2]) =>
        replaceOnce(shown(file), textOf("edit", file, before), old, by);
      await editorOf(ctx).change(file, edit, ctx);
      return "Edited.";
    },
  });

  return [writeFile, editFile];
}
