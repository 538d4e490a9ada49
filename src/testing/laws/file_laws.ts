/**
 * The laws of files.
 *
 * @module
 */
import type { FileChange, Files } from "../../protocol/files.ts";
import { brokenLaws, type LawOptions, type Laws } from "./laws.ts";

/**
 * Tests an implementation of `Files` against its laws. `make` creates a new, empty one for each law. Throws an `Error` that names each broken law, and how
 * it is broken. An implementation
 *
 * - returns every content as it was written, of every length, in a copy;
 * - refuses a write of another version, so that one of several writers wins;
 * - returns a file before or after a write, and never in between;
 * - creates the folders of a file, and lists their entries;
 * - returns nothing after a delete;
 * - reports every change until it is unwatched, if it has `watch`.
 *
 * ```ts
 * import { memoryFiles } from "@jizai/jizai/middleware/workspace";
 * import { fileLaws } from "@jizai/jizai/testing";
 * import { assertRejects } from "@std/assert";
 *
 * await fileLaws(() => memoryFiles());
 *
 * const secretive = () => ({ ...memoryFiles(), async *list() {} });
 * await assertRejects(() => fileLaws(secretive), Error, "lists the entries of a folder");
 * ```
 */
export async function fileLaws(
  make: () => Files | Promise<Files>,
  { time }: Pick<LawOptions, "time"> = {},
): Promise<void> {
  const paragraphs = await brokenLaws(laws, make, time);
  if (paragraphs.length > 0) throw new Error(paragraphs.join("\n"));
}

const contents: Readonly<Record<string, Uint8Array<ArrayBuffer>>> = {
  "empty": bytesOf(""),
  "text.txt": bytesOf("自在鉤\r\n🔥\u2028\u0000"),
  "bytes": Uint8Array.from({ length: 256 }, (_, index) => index),
  "long": bytesOf("0123456789".repeat(100_000)),
  "a/b/c/deep.txt": bytesOf("deep"),
  "a/b.txt": bytesOf("beside"),
  ".hidden": bytesOf("hidden"),
  "with space (1) 'q' + 漢 😀.txt": bytesOf("named"),
  "__proto__": bytesOf("own"),
};

const laws: Laws<Files> = {
  async "finds no file that was never written"(files, expect) {
    expect("stat()", await files.stat("none"), undefined);
    expect("read()", await files.read("none/at/all"), undefined);
    expect("list() of the root", await listed(files, "."), []);
    expect("list() of a folder", await listed(files, "none"), []);
    expect("stat() of the root", await files.stat("."), { type: "folder" });
    await files.delete("none");
    expect("write() of a version", await files.write("none", bytesOf("late"), "1"), undefined);
    expect("read() after that", await files.read("none"), undefined);
  },

  async "returns a file as it was written"(files, expect) {
    for (const [path, bytes] of Object.entries(contents)) {
      const version = await files.write(path, bytes, undefined);
      const file = await files.read(path);
      expect(`read("${path}")`, file?.bytes.join(), bytes.join());
      expect("its version", file?.version, version);
      expect(`stat("${path}")`, await files.stat(path), { type: "file", size: bytes.length });
    }
  },

  async "copies what it saves and what it returns"(files, expect) {
    const bytes = bytesOf("mine");
    await files.write("mine", bytes, undefined);
    bytes.fill(0);
    (await files.read("mine"))?.bytes.fill(0);
    expect("read()", await textIn(files, "mine"), "mine");
  },

  async "refuses a write of another version"(files, expect) {
    const first = await files.write("s", bytesOf("1"), undefined);
    const second = await files.write("s", bytesOf("22"), first);
    for (const version of [undefined, first, `${second}x`]) {
      expect(`write() of version ${version}`, await files.write("s", bytesOf("late"), version), undefined);
    }
    expect("read()", await textIn(files, "s"), "22");
    expect("the versions differ", first !== second, true);
    await files.write("s", bytesOf(""), second);
    expect("read() of an empty file", await textIn(files, "s"), "");
  },

  async "accepts one of several concurrent writers"(files, expect) {
    let version: string | undefined;
    for (const [round, length] of [1, 1, 400_000, 10].entries()) {
      const texts = ["a", "b", "c", "d"].map((writer) => `${writer}${round}`.repeat(length));
      const writes = await Promise.all(texts.map((text) => files.write("in/s", bytesOf(text), version)));
      const won = writes.findIndex((write) => write !== undefined);
      expect("the number of winners", writes.filter((write) => write !== undefined).length, 1);
      expect("read() after the writes", await textIn(files, "in/s"), texts[won]);
      version = writes[won];
    }
  },

  async "never returns a partial write"(files, expect) {
    let isOpen = true;
    const write = async () => {
      let version: string | undefined;
      for (let turn = 1; turn <= 8; turn++) {
        version = await files.write("s", bytesOf(`${turn}`.repeat(200_000)), version);
      }
      isOpen = false;
    };
    const look = async () => {
      while (isOpen) {
        const text = await textIn(files, "s");
        if (text) expect("read() during a write", text, text.charAt(0).repeat(200_000));
        await Promise.resolve();
      }
    };
    await Promise.all([write(), look(), look()]);
  },

  async "lists the entries of a folder"(files, expect) {
    for (const [path, bytes] of Object.entries(contents)) await files.write(path, bytes, undefined);
    const entries = Object.keys(contents).filter((path) => !path.includes("/")).map((name) => ({ name, type: "file" }));
    expect("list() of the root", await listed(files, "."), sorted([...entries, { name: "a", type: "folder" }]));
    expect("list() of a folder", await listed(files, "a"), [
      { name: "b", type: "folder" },
      { name: "b.txt", type: "file" },
    ]);
    expect("stat() of a folder", await files.stat("a/b"), { type: "folder" });
    expect("stat() of a prefix of a name", await files.stat("a/b/c/dee"), undefined);
    expect("list() of a prefix of a name", await listed(files, "a/b/c/dee"), []);
  },

  async "returns nothing after a delete"(files, expect) {
    const version = await files.write("in/gone", bytesOf("gone"), undefined);
    await files.write("in/stays", bytesOf("stays"), undefined);
    await files.delete("in/gone");
    expect("read()", await files.read("in/gone"), undefined);
    expect("stat()", await files.stat("in/gone"), undefined);
    expect("list()", await listed(files, "in"), [{ name: "stays", type: "file" }]);
    expect("write() of its version", await files.write("in/gone", bytesOf("late"), version), undefined);
    await files.write("in/gone", bytesOf("new"), undefined);
    expect("read() of a new one", await textIn(files, "in/gone"), "new");
  },

  async "reports every change"(files, expect, signal) {
    const reported: FileChange[] = [];
    const steps: readonly (readonly [FileChange["change"], () => Promise<unknown>])[] = [
      ["add", () => files.write("in/s", bytesOf(""), undefined)],
      ["change", async () => await files.write("in/s", bytesOf("more"), (await files.read("in/s"))?.version)],
      ["unlink", () => files.delete("in/s")],
    ];
    await files.write("in/old", bytesOf("old"), undefined);
    const end = await files.watch?.((change) => reported.push(change));
    if (!end) return;
    for (const [change, step] of steps) {
      await step();
      while (reported.at(-1)?.change !== change && !signal.aborted) {
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
    await end();
    await files.write("late", bytesOf("late"), undefined);
    const once = reported.filter(({ change }, index) => change !== reported[index - 1]?.change); // an implementation may report one change several times
    expect("the reported changes", once, steps.map(([change]) => ({ path: "in/s", change })));
  },
};

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

async function textIn(files: Files, path: string): Promise<string | undefined> {
  const file = await files.read(path);
  return file && new TextDecoder().decode(file.bytes);
}

async function listed(files: Files, folder: string): Promise<readonly unknown[]> {
  return sorted(await Array.fromAsync(files.list(folder), ({ name, type }) => ({ name, type })));
}

function sorted(entries: readonly { readonly name: string; readonly type: string }[]): readonly unknown[] {
  return entries.toSorted((a, b) => a.name < b.name ? -1 : 1);
}
