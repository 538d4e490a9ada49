/**
 * The end of processes.
 *
 * @module
 */

/** What ends a process with a SIGKILL, unless it has ended, and waits until it has. */
export function killing(process: Deno.ChildProcess): () => Promise<void> {
  let ended = false;
  const end = process.status.then(() => {
    ended = true;
  });
  return async () => {
    if (!ended) process.kill("SIGKILL");
    await end;
  };
}
