/**
 * The settings of a Redis server that can lose events.
 *
 * @module
 */
import type { RedisClient } from "./client.ts";

/** Options that report the settings of a server. */
export interface RedisWarningOptions {
  /** Receives a warning for each setting with which Redis can lose what it has accepted. Default: a warning of the process. */
  readonly onWarning?: (message: string) => void;
}

/** Reads the settings of the server, and warns for those with which it can lose data. Never rejects. */
export async function warnOfRisks(
  redis: RedisClient,
  { onWarning = emitWarning }: RedisWarningOptions,
): Promise<void> {
  try {
    const info = (await Promise.all(["memory", "persistence", "replication"].map((section) => redis.info(section))))
      .join("\n");
    for (const risk of risksOf(info)) onWarning(`Redis can lose sessions and events: ${risk}`);
  } catch (error) {
    onWarning(`Cannot check whether Redis can lose sessions and events: ${error}`);
  }
}

/** Returns the settings in the reply of INFO with which a server can lose data. */
function risksOf(info: string): readonly string[] {
  const valueOf = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
  const policy = valueOf("maxmemory_policy");
  const evicts = policy !== "noeviction" && valueOf("maxmemory") !== "0";
  return [
    ...evicts ? [`maxmemory-policy is "${policy}"; expected "noeviction"`] : [],
    ...valueOf("aof_enabled") === "1" ? [] : ['appendonly is "no"; expected "yes" with appendfsync "always"'],
    ...Number(valueOf("connected_slaves")) > 0 ? ["a failover to a replica drops writes that it does not have"] : [],
  ];
}

/** Emits a warning of the process, where the runtime has them: Node, Deno and Bun write it to the standard error. */
function emitWarning(message: string): void {
  const { process } = globalThis as { process?: { emitWarning?(message: string): void } }; // the types of a runtime are not known here
  process?.emitWarning?.(message);
}
