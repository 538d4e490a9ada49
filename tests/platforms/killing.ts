/**
 * Kills processes.
 *
 * @module
 */

/** Returns a function that ends a process with SIGKILL, unless it has ended, and waits for its end. */
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
