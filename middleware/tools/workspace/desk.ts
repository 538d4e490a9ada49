/**
 * The desk: what the tools of one run work with.
 *
 * @module
 */
import { type FileChange, type FileContent, type Files, ToolError, type ToolExecutionContext } from "../../../mod.ts";
import { cancellationOf, Locks } from "../../../src/core/kit.ts";
import { decode, encode } from "./text.ts";

const mostTries = 20;

/** Who changes a file: a call. */
export type Author = Pick<ToolExecutionContext, "turn" | "callId" | "emit" | "signal">;

/** What becomes of a file. */
export type Make = (before: FileContent | undefined) => string;

/** Files, with those at work on them. */
export class Desk {
  /** Those who work on a file, in the order of their calls. */
  readonly locks = new Locks();
  /** What the run itself has written, to know it again. */
  readonly #written = new Map<string, { readonly size: number; readonly version: string }>();

  /** Takes files of up to `maxBytes` bytes. */
  constructor(readonly files: Files, readonly maxBytes: number) {}

  /** The text of a file, when those are done who came before. Throws a `ToolError` where there is none. */
  async read(path: string, { signal }: Pick<Author, "signal">): Promise<string> {
    return await this.locks.hold(path, cancellationOf(signal), async () => textOf(await this.#open(path)));
  }

  /**
   * Makes of a file what `make` makes of it, when those are done who came before, and however often somebody else is faster.
   * Gives what became of it; nothing where it is as it was.
   */
  async change(path: string, make: Make, author: Author): Promise<FileChange["change"] | undefined> {
    return await this.locks.hold(path, cancellationOf(author.signal), () => this.#change(path, make, author));
  }

  async #change(path: string, make: Make, author: Author): Promise<FileChange["change"] | undefined> {
    for (let tries = 0; tries < mostTries; tries++) {
      author.signal.throwIfAborted();
      const before = await this.#open(path);
      const bytes = encode(make(before));
      if (before && same(before.bytes, bytes)) return undefined;
      if (bytes.length > this.maxBytes) throw new ToolError(this.#tooLarge(bytes.length));
      const version = await this.files.write(path, bytes, before?.version);
      if (version === undefined) continue;
      this.#written.set(path, { size: bytes.length, version });
      const change = before ? "change" : "add";
      author.emit({ type: "file.changed", turn: author.turn, call: author.callId, path, change });
      return change;
    }
    throw new ToolError("It changes again and again while it is written.");
  }

  /** Whether a file is as the run itself left it. */
  async isOwn(path: string): Promise<boolean> {
    const written = this.#written.get(path);
    const stat = written && await this.files.stat(path);
    if (stat?.type !== "file" || stat.size !== written?.size) return false;
    return (await this.files.read(path))?.version === written.version;
  }

  /** The file, or nothing where there is none. Throws a `ToolError` for a folder, and for a file that is too large. */
  async #open(path: string): Promise<FileContent | undefined> {
    const stat = await this.files.stat(path);
    if (stat?.type === "folder") throw new ToolError("It is a folder.");
    if (stat && stat.size > this.maxBytes) throw new ToolError(this.#tooLarge(stat.size));
    return stat && await this.files.read(path);
  }

  #tooLarge(size: number): string {
    return `It has ${size} bytes, and ${this.maxBytes} are the most.`;
  }
}

/** The text of a file that was opened. Throws a `ToolError` where there is none, or it is no text. */
export function textOf(file: FileContent | undefined): string {
  if (!file) throw new ToolError("There is no such file.");
  const text = decode(file.bytes);
  if (text === undefined) throw new ToolError("It is no text.");
  return text;
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
