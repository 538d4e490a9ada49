/**
 * Comparisons of a recorded run with the same run of another agent.
 *
 * @module
 */
import type { Agent } from "../../core/agent.ts";
import { canonicalJson } from "../../core/lib/json.ts";
import type { Event } from "../../protocol/event.ts";
import { textOf } from "../../protocol/message.ts";
import type { Execution } from "./player.ts";
import type { Recording } from "./recording.ts";
import { play, type RerunOptions } from "./replay.ts";

/** One difference: the recorded line, and the line of the other run. Undefined if a run has none. */
export interface Difference {
  /** The kind of the line. */
  readonly kind: "decision" | "call" | "text";
  /** The call id, or the name of the text. */
  readonly subject: string;
  /** The recorded line. */
  readonly recorded: string | undefined;
  /** The line of the other run. */
  readonly now: string | undefined;
}

/** The differences of two runs. */
export interface Comparison {
  /** Whether there is no difference. */
  readonly same: boolean;
  /** The differences, in the order of the recorded run. */
  readonly differences: readonly Difference[];
  /** The differences as text, such as for `console.log()`. */
  readonly report: string;
}

/**
 * Runs a recorded run again with another agent, and returns which decisions, calls and texts differ. With `model: "agent"`, the agent's own model answers, as a
 * changed prompt needs; calls that the recording has with the same input get their recorded result, and others are skipped.
 *
 * ```ts
 * import { agent, type Middleware } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { compare, recordable } from "@jizai/jizai/replay";
 * import { assertEquals } from "@std/assert";
 *
 * const model = scripted("Hello!");
 * const recording = await recordable(agent({ model })).run({ prompt: "Hi", record: true }).recording;
 *
 * const shout: Middleware = {
 *   name: "shout",
 *   async prompt(_ctx, next) {
 *     const answer = await next();
 *     return { ...answer, text: answer.text.toUpperCase() };
 *   },
 * };
 * const { report } = await compare(recording!, agent({ model, use: [shout] }));
 * assertEquals(report, "text answer\n  - Hello!\n  + HELLO!");
 * ```
 */
export async function compare<V, O>(
  recording: Recording,
  agent: Agent<V, O>,
  options: RerunOptions = {},
): Promise<Comparison> {
  const now = await play(recording, agent, options);
  const calls = recording.entries.flatMap((entry) => entry.type === "call" ? [entry] : []);
  const before = linesOf(recording.events, calls, recording.result);
  const after = linesOf(now.events, now.executions, now.result);
  const keys = [...new Set([...before.keys(), ...after.keys()])];
  const differences = keys.flatMap((key): Difference[] => {
    const [recorded, other] = [before.get(key)?.line, after.get(key)?.line];
    const { kind, subject } = before.get(key) ?? after.get(key)!; // one of them has the key
    return recorded === other ? [] : [{ kind, subject, recorded, now: other }];
  });
  return { same: differences.length === 0, differences, report: differences.map(linesOfDifference).join("\n") };
}

function linesOfDifference({ kind, subject, recorded, now }: Difference): string {
  return [
    `${kind} ${subject}`,
    ...(recorded === undefined ? [] : [`  - ${recorded}`]),
    ...(now === undefined ? [] : [`  + ${now}`]),
  ].join("\n");
}

/** One comparable line of a run. */
type Line = Pick<Difference, "kind" | "subject"> & { readonly line: string };

/** Returns the comparable lines of a run, by their key. */
function linesOf(
  events: readonly Event[],
  executions: readonly Execution[],
  { status, text }: { readonly status: string; readonly text: string },
): ReadonlyMap<string, Line> {
  const lines = new Map<string, Line>();
  function add(kind: Line["kind"], subject: string, line: string, detail = ""): void {
    let key = `${kind} ${subject} ${detail}`;
    while (lines.has(key)) key += "'"; // the next attempt
    lines.set(key, { kind, subject, line });
  }
  for (const event of events) {
    if (event.type === "call.ready") {
      add("call", event.call.id, `${event.call.name} ${canonicalJson(event.call.input)}`, "made");
    }
    if (event.type === "approval.asked") add("decision", event.call, `ask: ${event.questions.join("; ")}`);
    if (event.type === "approval.decided") {
      add("decision", event.call, `${event.decision} by ${event.by}${event.reason ? `: ${event.reason}` : ""}`);
    }
    if (event.type === "tool.finished") {
      add("call", event.call, `${event.result.status}: ${textOf(event.result)}`, "result");
    }
  }
  for (const { call, name, input } of executions) add("call", call, `ran ${name} ${canonicalJson(input)}`, "ran");
  add("text", "status", status);
  add("text", "answer", text);
  return lines;
}
