/**
 * A Postgres server for tests, from the programs that `apt-get install postgresql` installs.
 *
 * @module
 */
import { spawned } from "./small_disk.ts";

/**
 * Finds the programs, creates a cluster on a free port of this machine, and deletes it when the standard input ends. Each line of it is a command. Root cannot
 * run the server. The arguments are the size of the largest file in kilobytes, whether writes reach the disk, and the megabytes of a disk of its own for the
 * tables, which needs a private mount namespace.
 */
const script = `
  bin=$(dirname "$(ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -n 1 || command -v initdb)")
  [ -x "$bin/initdb" ] || { echo missing; exit; }
  data=$(mktemp -d)
  as=""
  if [ "$(id -u)" = 0 ]; then chown postgres "$data"; as="runuser -u postgres --"; fi
  cd "$data"
  $as "$bin/initdb" -D "$data/db" -U postgres -A trust -E UTF8 --locale=C.UTF-8 -N >/dev/null || exit 1
  if [ -n "$3" ]; then mkdir "$data/disk" && mount -t tmpfs -o "size=$3m" tmpfs "$data/disk" && chown postgres "$data/disk" || exit 1; fi
  start() (
    [ -z "$1" ] || ulimit -f $(($1 * 2))
    $as "$bin/pg_ctl" -D "$data/db" -w -l "$data/log" \\
      -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$data -c fsync=$2" start >/dev/null
  )
  for port in $(shuf -i 20000-40000 -n 5); do
    if start "$1" "$2"; then echo "$port $data/disk"; break; fi
  done
  signal() {
    pid=$(head -n 1 "$data/db/postmaster.pid")
    kill "-$1" "$pid" $(grep -ls "^PPid:[[:space:]]*$pid$" /proc/[0-9]*/status | cut -d / -f 3)
  }
  while read -r line; do
    case "$line" in
      kill) $as "$bin/pg_ctl" -D "$data/db" -m immediate stop >/dev/null ;;
      start) start "$1" "$2" ;;
      fill) head -c 1G /dev/zero >"$data/disk/fill" 2>/dev/null ;;
      free) rm "$data/disk/fill" ;;
      freeze) signal STOP ;;
      thaw) signal CONT ;;
    esac
    echo done
  done
  $as "$bin/pg_ctl" -D "$data/db" -m immediate stop >/dev/null 2>&1
  [ -z "$3" ] || umount "$data/disk"
  rm -rf "$data"
`;

/** A running server. It ends when it is disposed of. */
export interface PostgresServer extends AsyncDisposable {
  /** The address for a driver. */
  readonly url: string;
  readonly port: number;
  /** The folder of its own disk, if it has one. */
  readonly disk: string;
  /** Kills the server, or starts it again with the data that it has on disk; fills its own disk, or frees it; freezes its processes, or lets them go on. */
  control(command: "kill" | "start" | "fill" | "free" | "freeze" | "thaw"): Promise<void>;
}

/** Options of a server. */
export interface PostgresServerOptions {
  /** The size of its largest file. Default: no limit. */
  readonly fileKilobytes?: number;
  /** Whether it waits for the disk. Default: false. */
  readonly fsync?: boolean;
  /** The size of a disk of its own for tables. Default: it has none. */
  readonly diskMegabytes?: number;
}

/** Starts a server. Returns undefined where Postgres is not installed. */
export async function postgresServer(
  { fileKilobytes, fsync = false, diskMegabytes }: PostgresServerOptions = {},
): Promise<PostgresServer | undefined> {
  const args = ["-c", script, "sh", `${fileKilobytes ?? ""}`, fsync ? "on" : "off", `${diskMegabytes ?? ""}`];
  const process = spawned(args, diskMegabytes !== undefined);
  const input = process.stdin.getWriter();
  const output = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await output.read();
  const [port = "", disk = ""] = value.trim().split(" ");
  async function stop() {
    await input.close();
    await output.cancel();
    await process.status;
  }
  if (/^\d+$/.test(port)) {
    return {
      url: `postgres://postgres@127.0.0.1:${port}/postgres`,
      port: Number(port),
      disk,
      async control(command) {
        await input.write(new TextEncoder().encode(`${command}\n`));
        await output.read();
      },
      [Symbol.asyncDispose]: stop,
    };
  }
  await stop();
  if (port !== "missing") throw new Error(`Cannot start Postgres: its script printed "${port}"; expected a port`);
  return undefined;
}

/** Whether Postgres is missing on this machine. */
export async function isPostgresMissing(): Promise<boolean> {
  const args = ["-c", "ls /usr/lib/postgresql/*/bin/initdb || command -v initdb"];
  const { success } = await new Deno.Command("sh", { args, stdout: "null", stderr: "null" }).output();
  return !success;
}
