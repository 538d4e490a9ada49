/**
 * The files port: the files of an agent, in memory, in a directory, or in an object store.
 *
 * @module
 */

/** The state of a path. */
export type FileStat = { readonly type: "file"; readonly size: number } | { readonly type: "folder" };

/** A file as it was read. */
export interface FileContent {
  /** The content of the file. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Identifies the content, as the etag of an object store does: another content has another version. */
  readonly version: string;
}

/** One entry of a folder. */
export interface FileEntry {
  /** Its name in the folder. */
  readonly name: string;
  /** The kind of the entry. */
  readonly type: FileStat["type"];
}

/** A change of a file. */
export interface FileChange {
  /** The file. */
  readonly path: string;
  /** The file is new, has another content, or was deleted. */
  readonly change: "add" | "change" | "unlink";
}

/**
 * A file system. A path is one or more names joined by `/`, relative to the root. It has no `.` or `..`, no empty name and no backslash. The root itself is
 * `.`. A folder is created with its first file. A method that fails throws; the model reads the message of a `ToolError`.
 */
export interface Files {
  /** Returns the type and the size of an entry; undefined if there is none. */
  stat(path: string): Promise<FileStat | undefined>;
  /** Returns the content of a file; undefined if there is none. */
  read(path: string): Promise<FileContent | undefined>;
  /**
   * Writes the file if its version is `version` (`undefined`: the file does not exist), and returns the new version.
   * Returns `undefined`, and writes nothing, if the file has another version.
   */
  write(path: string, bytes: Uint8Array<ArrayBuffer>, version: string | undefined): Promise<string | undefined>;
  /** Deletes the file, if it exists. */
  delete(path: string): Promise<void>;
  /** Returns the entries of a folder, in no fixed order; none if there is no such folder. */
  list(folder: string): AsyncIterable<FileEntry>;
  /** Reports all changes, also those of other processes, until the returned function is called. Absent if changes cannot be observed. */
  watch?(listener: (change: FileChange) => void): Promise<() => Promise<void>>;
}
