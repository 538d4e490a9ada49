/**
 * Attacks on `workspace()`: paths that are written in many ways to leave the root, or to reach a folder whose files other programs execute.
 *
 * @module
 */
import { agent, memory } from "@jizai/jizai";
import type { Files } from "@jizai/jizai/middleware/workspace";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { scripted } from "@jizai/jizai/model/scripted";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

const names = [
  ...[
    ".git",
    ".GIT",
    ".g\u0131t",
    ".git ",
    ".git.",
    ".git::$INDEX_ALLOCATION",
    "git~1",
    ".g\u200bit",
    "\uff0egit",
    "x.git",
  ],
  ...[".husky", ".Hooks", "hooks", ".githooks", ".github", ".claude", ".hg", "settings.json", "pre-commit"],
  ...["..", ".", "", "...", "\uff0e\uff0e", "%2e%2e", "a", "b", "C:", "con", "a\u0000b", "\u2215", "\\..\\", "~"],
] as const;

function path({ below, one }: Chance): string {
  const parts = Array.from({ length: 1 + below(5) }, () => one(names as unknown as [string, ...string[]])); // there are names
  return `${one(["", "", "", "/", "./", "//"])}${parts.join(one(["/", "/", "/", "\\", "//"]))}`;
}

/** Returns the paths of all files. */
async function pathsIn(files: Files, folder = "."): Promise<string[]> {
  const paths: string[] = [];
  for await (const { name, type } of files.list(folder)) {
    const path = folder === "." ? name : `${folder}/${name}`;
    paths.push(...type === "folder" ? await pathsIn(files, path) : [path]);
  }
  return paths;
}

/** Returns true if other programs may execute or obey a file at this path, on a file system that ignores case, trailing dots and compatible forms. */
function isDangerous(path: string): boolean {
  const folded = path.normalize("NFKC").toLowerCase().split(/[/\\]/).map((name) => name.replace(/[\s.]+$/, "") || name);
  if (folded.some((name) => name === ".." || name === "." || name === "")) return true;
  if (folded.some((name) => /^(.*\.git|git~\d+|\.hg|\.husky|\.githooks)$/.test(name))) return true;
  return folded.some((name, index) => name === ".github" && folded[index + 1] === "hooks");
}

/** Writes files to random paths, also from a folder that was changed to. Fails if one is written where it must not be. */
export const files: Attack = {
  name: "files",
  async attempt(chance) {
    const kept = memoryFiles({ "a/b/old.txt": "old" });
    const count = 10;
    const calls = Array.from({ length: count }, () => {
      const at = chance.below(4);
      if (at === 0) return ["change_directory", { path: path(chance) }] as const;
      return ["write_file", { path: path(chance), content: "new" }] as const;
    });
    const model = scripted({ calls }, "Done.");
    const { status } = await agent({ model, use: [workspace(kept)] }).run({
      prompt: "Go",
      session: "s",
      store: memory(),
    })
      .result;
    expect(status === "done", () => `the run ended with ${status}`);
    for (const each of await pathsIn(kept)) {
      expect(!isDangerous(each), () => `a file was written to ${JSON.stringify(each)} by ${JSON.stringify(calls)}`);
    }
    return count;
  },
};
