/**
 * Reads and changes the files of one run, and tracks its folder.
 *
 * @module
 */
import * as z from "zod";
import { decode, encode, expectWritable, resolve, root, shown } from "./path.ts";
import { type AnyTool, type Scope, state, tool, ToolError, type ToolExecutionContext } from "../../../mod.ts";
import { cancellationOf, type FileChange, type FileContent, type Files, Locks } from "../../../src/core/kit.ts";

// Tracks the folder in which the agent works, and defines the tool `change_directory`.

/** The current folder, and the folder in which the calls of a turn start. */
interface WorkingDirectory {
  readonly cwd: string;
  readonly turn: number;
  readonly turnStart: string;
}

/** Key of the lock that calls of `change_directory` share. No path equals it. */
const lock = ":";

const directory = state<WorkingDirectory>("workspace", () => ({ cwd: root, turn: 0, turnStart: root }));

/** Returns the folder in which the calls of this turn start. It stays the same for all of them, also when the turn resumes after a pause. */
export function turnStartOf(ctx: Scope & { readonly turn: number }): string {
  const { cwd, turn, turnStart } = directory.get(ctx);
  if (turn === ctx.turn) return turnStart;
  directory.set(ctx, { cwd, turn: ctx.turn, turnStart: cwd });
  return cwd;
}

/** Creates the tool `change_directory`; `editorOf` returns the editor of a run. */
export function changeDirectory<V>(editorOf: (scope: Scope<V>) => FileEditor): AnyTool<V> {
  return tool({
    name: "change_directory",
    description:
      "Changes the current folder for your next response. Calls in this response still start in the old one.",
    input: z.object({ path: z.string().describe("The folder; .. is its parent") }),
    async execute({ path }, ctx: ToolExecutionContext<V>) {
      const to = resolve(root, path);
      const { files, locks } = editorOf(ctx);
      return await locks.hold(lock, cancellationOf(ctx.signal), async () => {
        if ((await files.stat(to))?.type !== "folder") {
          throw new ToolError(`Cannot change to ${shown(to)}: there is no such folder.`);
        }
        const { cwd: from, ...rest } = directory.get(ctx);
        directory.set(ctx, { ...rest, cwd: to });
        if (to !== from) ctx.emit({ type: "cwd.changed", turn: ctx.turn, call: ctx.callId, from, to });
        return to === root ? "The current folder is the root." : `The current folder is ${to}.`;
      });
    },
  });
}

// The editor of a run: it locks each file, and detects changes that others make in the meantime.

const maxAttempts = 20;

/** The call that reads or changes a file. */
type Caller = Pick<ToolExecutionContext, "turn" | "callId" | "emit" | "signal">;

/** Returns the new text of a file. Called again if the file has changed in the meantime. */
type Edit = (before: FileContent | undefined) => string;

/** Reads and changes files, one call at a time for each file, in the order of the calls. */
export class FileEditor {
  /** Locks by path; a call holds the lock of its file. */
  readonly locks = new Locks();
  /** The last text that this run wrote to each file, so that `watch` can distinguish the changes of others. */
  readonly #written = new Map<string, { readonly size: number; readonly version: string }>();

  /** Creates an editor for files of up to `maxBytes` bytes. */
  constructor(readonly files: Files, readonly maxBytes: number) {}

  /** Returns the text of a file. Throws a `ToolError` if there is none. */
  async read(path: string, { signal }: Pick<Caller, "signal">): Promise<string> {
    return await this.locks.hold(
      path,
      cancellationOf(signal),
      async () => textOf("read", path, await this.#read("read", path)),
    );
  }

  /**
   * Changes a file and emits `file.changed`. If others change the file at the same time, `edit` is called again with their version.
   * Returns the kind of the change, or `undefined` if the content stays the same. Throws a `ToolError` if the file may not be written.
   */
  async change(path: string, edit: Edit, caller: Caller): Promise<FileChange["change"] | undefined> {
    expectWritable(path);
    return await this.locks.hold(path, cancellationOf(caller.signal), () => this.#change(path, edit, caller));
  }

  async #change(path: string, edit: Edit, caller: Caller): Promise<FileChange["change"] | undefined> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      caller.signal.throwIfAborted();
      const before = await this.#read("write", path);
      const bytes = encode(edit(before));
      if (!bytes) throw refusal("write", path, "the text contains half of a surrogate pair");
      if (before && areEqual(before.bytes, bytes)) return undefined;
      if (bytes.length > this.maxBytes) throw this.#tooLarge("write", path, bytes.length);
      const version = await this.files.write(path, bytes, before?.version);
      if (version === undefined) continue;
      this.#written.set(path, { size: bytes.length, version });
      const change = before ? "change" : "add";
      caller.emit({ type: "file.changed", turn: caller.turn, call: caller.callId, path, change });
      return change;
    }
    throw refusal("write", path, `others changed it ${maxAttempts} times while it was written`);
  }

  /** Returns whether this run wrote the present content of a file. */
  async wroteLast(path: string): Promise<boolean> {
    const written = this.#written.get(path);
    const stat = written && await this.files.stat(path);
    if (stat?.type !== "file" || stat.size !== written?.size) return false;
    return (await this.files.read(path))?.version === written.version;
  }

  /** Returns a file, or `undefined` if there is none. Throws a `ToolError` for a folder, and for a file that is too large. */
  async #read(operation: Operation, path: string): Promise<FileContent | undefined> {
    const stat = await this.files.stat(path);
    if (stat?.type === "folder") throw refusal(operation, path, "it is a folder");
    if (stat && stat.size > this.maxBytes) throw this.#tooLarge(operation, path, stat.size);
    return stat && await this.files.read(path);
  }

  #tooLarge(operation: Operation, path: string, size: number): ToolError {
    return refusal(operation, path, `it has ${size} bytes; expected at most ${this.maxBytes}`);
  }
}

type Operation = "read" | "write" | "edit";

/** Returns the text of a file. Throws a `ToolError` if there is no file, or its content is not text. */
export function textOf(operation: Operation, path: string, file: FileContent | undefined): string {
  if (!file) throw refusal(operation, path, "there is no such file");
  const text = decode(file.bytes);
  if (text === undefined) throw refusal(operation, path, "it is a binary file");
  return text;
}

function refusal(operation: Operation, path: string, reason: string): ToolError {
  return new ToolError(`Cannot ${operation} ${shown(path)}: ${reason}.`);
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
