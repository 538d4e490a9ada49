/**
 * Replaces files atomically: a draft next to the file locks it, receives the new content, and is renamed to the file.
 *
 * @module
 */
import fs, { type FileHandle } from "node:fs/promises";
import { basename, dirname, sep } from "node:path";
import { hashOf } from "../../../../src/core/kit.ts";
import { ignoreExisting, ignoreMissing } from "./paths.ts";

/** A draft that is older was left by a process that died, in milliseconds. */
const staleAfter = 10_000;
/** Time between attempts to take the lock, in milliseconds. */
const interval = 5;

/** The new content of a file. While it exists, no other process that uses this module writes the file. */
export interface Draft {
  /** Writes the content, with the permissions of `mode`, and replaces the file with it. Returns false if the folder was replaced in the meantime. */
  commit(bytes: Uint8Array, mode: number | undefined): Promise<boolean>;
  /** Deletes the draft if it was not committed. */
  discard(): Promise<void>;
}

/** Returns whether a name in a folder is that of a draft. */
export function isDraft(name: string): boolean {
  return /^\.jizai-[0-9a-f]{16}$/.test(name);
}

/**
 * Waits until no other process writes `file`, a real path, and opens a draft of it. Returns `undefined` if the folder of the file is no longer at its path.
 * Processes share no lock that notifies, so this asks every few milliseconds.
 */
export async function openDraft(file: string): Promise<Draft | undefined> {
  const folder = dirname(file);
  const place = `${folder === sep ? "" : folder}${sep}.jizai-${await nameHash(basename(file))}`;
  for (;;) {
    const handle = await fs.open(place, "wx").catch(ignoreExisting);
    if (handle) return await verified(handle, place, file);
    const other = await fs.lstat(place).catch(ignoreMissing);
    if (other && Date.now() - other.mtimeMs > staleAfter) await fs.unlink(place).catch(ignoreMissing);
    else await new Promise((resolve) => setTimeout(resolve, interval));
  }
}

/** Wraps a new draft, or deletes it if a link led to another folder while it was created. */
async function verified(handle: FileHandle, place: string, file: string): Promise<Draft | undefined> {
  const { ino, dev } = await handle.stat();
  let open = true;

  /** Returns the real path at which the draft is now. */
  async function realPlace(): Promise<string | undefined> {
    const real = await fs.realpath(place).catch(ignoreMissing);
    const stat = real === undefined ? undefined : await fs.lstat(real).catch(ignoreMissing);
    return stat?.ino === ino && stat.dev === dev ? real : undefined;
  }

  async function close(): Promise<void> {
    if (open) await handle.close();
    open = false;
  }

  async function discard(): Promise<void> {
    await close();
    const real = await realPlace();
    if (real !== undefined) await fs.unlink(real).catch(ignoreMissing);
  }

  if (await realPlace() !== place) {
    await discard();
    return undefined;
  }
  return {
    async commit(bytes, mode) {
      if (mode !== undefined) await handle.chmod(mode & 0o777);
      await handle.writeFile(bytes);
      await close();
      if (await realPlace() !== place) return false;
      return await fs.rename(place, file).then(() => true, ignoreMissing) ?? false;
    },
    discard,
  };
}

/** Hashes a name to 16 hexadecimal digits, so that the name of a draft is never too long. */
async function nameHash(name: string): Promise<string> {
  return (await hashOf(name)).slice(0, 16);
}
