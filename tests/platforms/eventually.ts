/**
 * Waits for a state of a process.
 *
 * @module
 */

/** Waits until `check` returns something. Throws after 30 seconds. */
export async function eventually<T>(check: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < 300; tries++) {
    const found = await check();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("Cannot see the expected state: 30 seconds have passed");
}
