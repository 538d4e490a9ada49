/**
 * Temporary folders for tests.
 *
 * @module
 */

/** A new folder, which is removed when it is disposed of. */
export async function folder(): Promise<AsyncDisposable & { readonly path: string }> {
  await Deno.mkdir("dist", { recursive: true });
  const path = await Deno.makeTempDir({ dir: "dist" });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}
