/**
 * The files port: where an agent's files are, in memory, in a directory, or in an object store.
 *
 * @module
 */

/** The state of a path. */
export type FileStat = { readonly type: "file"; readonly size: number } | { readonly type: "folder" };

/** A file as it was read. */
export interface FileContent {
  /** The content of the file. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Says which content this is; another content has another version. An object store's etag is one. */
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
  /** It is new, it has another content, or it is gone. */
  readonly change: "add" | "change" | "unlink";
}

/**
 * Where files are. A path is one or more names joined by `/`, from the root down: it is never absolute, and has no `.` or `..`, no empty name and no
 * backslash. The root itself is `.`, and a folder is made with the first file in it. What cannot be done is thrown; of a `ToolError` the model is told
 * the message.
 */
export interface Files {
  /** Returns the content of a file, or nothing if there is none. */
  stat(path: string): Promise<FileStat | undefined>;
  /** The file, or nothing where there is none. */
  read(path: string): Promise<FileContent | undefined>;
  /**
   * Writes the file if its version is `version` (`undefined`: there is none), and gives the version it has now.
   * Gives nothing, and writes nothing, where somebody else was faster.
   */
  write(path: string, bytes: Uint8Array<ArrayBuffer>, version: string | undefined): Promise<string | undefined>;
  /** Deletes the file, if it is there. */
  delete(path: string): Promise<void>;
  /** Returns the entries of a folder, in any order; none if there is no such folder. */
  list(folder: string): AsyncIterable<FileEntry>;
  /** Tells of changes, whoever makes them; gives what ends that. Only where changes can be seen. */
  watch?(hear: (change: FileChange) => void): Promise<() => Promise<void>>;
}
