/**
 * A Redis server for tests, from the program that `apt-get install redis-server` installs.
 *
 * @module
 */
import { time } from "../../src/session/redis_scripts/script.ts";
import { spawned } from "./small_disk.ts";

/**
 * Starts the server in a folder of its own, and deletes the folder when the standard input ends. Each line of it is a command. The first argument is the
 * megabytes of a disk of its own for the folder, which needs a private mount namespace.
 */
const script = `
  command -v redis-server >/dev/null || { echo missing; exit; }
  data=$(mktemp -d)
  disk=$1
  shift
  if [ -n "$disk" ]; then mount -t tmpfs -o "size=\${disk}m" tmpfs "$data" || exit 1; fi
  start() {
    redis-server --port $port --bind 127.0.0.1 --dir "$data" --save "" --loglevel warning "$@" >>"$data/out" 2>&1 &
    pid=$!
    for _ in $(seq 500); do
      redis-cli -p $port ping 2>/dev/null | grep -q PONG && return 0
      kill -0 $pid 2>/dev/null || return 1
      sleep 0.02
    done
    return 1
  }
  end() { kill -$1 $pid 2>/dev/null; wait $pid 2>/dev/null; }
  for port in $(shuf -i 20000-40000 -n 5); do
    if start "$@"; then echo "$port"; break; fi
  done
  while read -r line; do
    case "$line" in
      kill) end KILL ;;
      start) start "$@" ;;
      fill) head -c 1G /dev/zero >"$data/fill" 2>/dev/null ;;
      free) rm "$data/fill" ;;
    esac
    echo done
  done
  end KILL
  [ -z "$disk" ] || umount "$data"
  rm -rf "$data"
`;

/** Arguments of a server that loses nothing. */
export const safe = ["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"];

/** A running server. It ends when it is disposed of. */
export interface RedisServer extends AsyncDisposable {
  readonly port: number;
  /** Kills the server, or starts it again with the data that it has on disk; fills its own disk, or frees it. */
  control(command: "kill" | "start" | "fill" | "free"): Promise<void>;
}

/** Starts a server, if wanted with a disk of its own. Returns undefined where Redis is not installed. */
export async function redisServer(
  args: readonly string[] = safe,
  diskMegabytes?: number,
): Promise<RedisServer | undefined> {
  const process = spawned(["-c", script, "sh", `${diskMegabytes ?? ""}`, ...args], diskMegabytes !== undefined);
  const output = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const input = process.stdin.getWriter();
  const { value = "" } = await output.read();
  const port = value.trim();
  async function stop() {
    await input.close();
    await output.cancel();
    await process.status;
  }
  if (!/^\d+$/.test(port)) {
    await stop();
    if (port !== "missing") throw new Error(`Cannot start Redis: its script printed "${port}"; expected a port`);
    return undefined;
  }
  return {
    port: Number(port),
    async control(command) {
      await input.write(new TextEncoder().encode(`${command}\n`));
      await output.read();
    },
    [Symbol.asyncDispose]: stop,
  };
}

/** Whether Redis is missing on this machine. */
export async function isRedisMissing(): Promise<boolean> {
  const args = ["-c", "command -v redis-server"];
  const { success } = await new Deno.Command("sh", { args, stdout: "null", stderr: "null" }).output();
  return !success;
}

/** Returns the `eval()` of a client with the time of this process in place of the server's, for tests that pretend that time passes. */
export function byProcessClock<A extends readonly unknown[]>(
  evaluate: (script: string, ...rest: A) => Promise<unknown>,
): (script: string, ...rest: A) => Promise<unknown> {
  return (script, ...rest) => script === time ? Promise.resolve(Date.now()) : evaluate(script, ...rest);
}
