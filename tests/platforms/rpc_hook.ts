/**
 * A hook process of PicoClaw. Its argument selects its behavior.
 *
 * @module
 */
import { linesOf } from "../../middleware/foreign_hooks/picoclaw/rpc_hooks/lines.ts";

const [does = ""] = Deno.args;
const encoder = new TextEncoder();

function send(text: string): void {
  const bytes = encoder.encode(`${text}\n`);
  for (let written = 0; written < bytes.length;) written += Deno.stdout.writeSync(bytes.subarray(written));
}

/** The reply to a call. */
function answerTo(command: string): unknown {
  switch (does) {
    case "place":
      return {
        action: "respond",
        result: {
          for_llm: `${Deno.cwd()} ${Deno.env.get("HOOK_NAME")} ${Deno.env.has("PATH")}${
            Deno.env.get("GREETING") ?? ""
          }`,
        },
      };
    case "pid":
      return { action: "respond", result: { for_llm: `${Deno.pid}` } };
    default:
      return command.includes("rm") ? { action: "deny_tool", reason: "Dangerous" } : { action: "continue" };
  }
}

console.error("a hook begins"); // ignored output
for await (const line of linesOf(Deno.stdin.readable.values())) {
  const { id, method, params } = JSON.parse(line);
  if (does === "noise") send(`not JSON\n${"x".repeat(1_100_000)}`);
  if (does === "crash" && method !== "hook.hello") Deno.exit(3);
  if (does === "orphan" && method !== "hook.hello") {
    new Deno.Command("sleep", { args: ["100"], stdin: "null", stderr: "null" }).spawn(); // it keeps the output of this program open
    Deno.exit(0);
  }
  if (id !== undefined) send(JSON.stringify({ jsonrpc: "2.0", id, result: answerTo(params.arguments?.command ?? "") }));
}
if (does === "pid") await new Promise((resolve) => setTimeout(resolve, 60_000)); // it does not end when its input ends
