/**
 * Shells that may mount a small disk: in a namespace of their own, so that the disk is gone when they end.
 *
 * @module
 */

/** Starts a shell, if wanted with a mount namespace of its own. */
export function spawned(args: readonly string[], mounts: boolean): Deno.ChildProcess {
  const [program, ...before] = mounts ? ["unshare", "-m", "sh"] : ["sh"];
  return new Deno.Command(program ?? "sh", { args: [...before, ...args], stdin: "piped", stdout: "piped" }).spawn();
}

/** Whether this machine does not permit to mount a disk: only root may, and not in every container. */
export async function isMountRefused(): Promise<boolean> {
  const script = 'd=$(mktemp -d); unshare -m mount -t tmpfs -o size=1m tmpfs "$d"; done=$?; rmdir "$d"; exit $done';
  const { success } = await new Deno.Command("sh", { args: ["-c", script], stdout: "null", stderr: "null" }).output();
  return !success;
}
