/**
 * The official conformance suite of MCP, as a process on this machine.
 *
 * @module
 */
import { folder } from "../platforms/folder.ts";

const suite = "npm:@modelcontextprotocol/conformance@0.2.0-alpha.12";
const here = (file: string) => new URL(file, import.meta.url).pathname;

/** Runs the suite. Returns the number of its scenarios that passed, and the names of those that failed, sorted. */
export async function conformance(...args: readonly string[]): Promise<readonly [number, readonly string[]]> {
  await using disk = await folder();
  const options = ["--quiet", "--allow-all", "--no-config", "--lock", here("mcp_conformance.lock"), "--frozen"];
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", ...options, suite, ...args],
    cwd: disk.path,
    env: { NO_COLOR: "1" },
    stdin: "null",
  });
  const { stdout } = await command.output();
  const text = new TextDecoder().decode(stdout);
  const [, summary = text] = text.split("=== SUITE SUMMARY ===").length > 1
    ? text.split("=== SUITE SUMMARY ===")
    : text.split("=== SUMMARY ===");
  const [scored = ""] = summary.split("Not scored");
  const lines = [...scored.matchAll(/^([✓✗]) ([^:\s]+):/gm)];
  const failed = lines.filter(([, mark]) => mark === "✗").map(([, , name = ""]) => name);
  return [lines.length - failed.length, failed.toSorted()];
}

/** Returns the command of a client that lets `address` run each scenario. */
export function clientCommand(address: string): string {
  return `${Deno.execPath()} run --quiet --allow-all --no-config ${here("mcp_conformance_forward.js")} ${address}`;
}
