/**
 * Types of the part of Anthropic's SDK that keeps a memory in files.
 *
 * @module
 */

/** Anthropic's own execution of the commands of its memory tool. */
export class BetaLocalFilesystemMemoryTool {
  /** Creates a memory below a folder. */
  static init(folder: string): Promise<BetaLocalFilesystemMemoryTool>;
  /** Executes a command. Each rejects with an error for the model. */
  [command: string]: (input: Readonly<Record<string, unknown>>) => Promise<string>;
}
