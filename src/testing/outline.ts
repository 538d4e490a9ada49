/**
 * Outlines: the events of a run as short lines.
 *
 * @module
 */
import type { Event } from "../protocol/event.ts";
import type { Question } from "../protocol/question.ts";
import { textOf } from "../protocol/message.ts";

/**
 * Returns a line for each event: its type and its most important fields. Consecutive deltas share a line. Events of a child begin with its name.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { collect, outline, scripted } from "@jizai/jizai/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const { events } = await collect(agent({ model: scripted({ text: ["Hel", "lo!"] }) }).run("Hi"));
 * assertEquals(outline(events), [
 *   "run.started",
 *   "session.opened new",
 *   "prompt.accepted Hi",
 *   "turn.started 1",
 *   "model.started scripted",
 *   "text.delta Hello!",
 *   "model.finished stop",
 *   "turn.finished 1",
 *   "session.closed",
 *   "run.finished done Hello!",
 * ]);
 * ```
 */
export function outline(events: readonly Event[]): readonly string[] {
  const lines: string[] = [];
  let growing: string | undefined;
  for (const event of events) {
    const [start, grown] = lineOf(event);
    if (grown !== undefined && start === growing) lines.push(lines.pop() + flat(grown));
    else lines.push(grown === undefined ? start : `${start} ${flat(grown)}`);
    growing = grown === undefined ? undefined : start;
  }
  return lines;
}

/** Returns the line of an event; for a delta also its text, which is appended to the line. */
function lineOf(event: Event): readonly [start: string, grown?: string] {
  switch (event.type) {
    case "subagent.event": {
      const [start, ...grown] = lineOf(event.event);
      return [`${event.agent}: ${start}`, ...grown];
    }
    case "text.delta":
    case "reasoning.delta":
      return [event.type, event.text];
    case "call.delta":
      return [`${event.type} ${event.call}`, event.text];
    default:
      return [[event.type, ...factsOf(event).filter((fact) => fact !== undefined && fact !== "")].map(flat).join(" ")];
  }
}

/** Returns the most important fields of an event. */
function factsOf(event: Event): readonly unknown[] {
  switch (event.type) {
    case "run.started":
      return [event.resumed ? "resumed" : undefined];
    case "run.finished":
      return [event.status, event.reason, event.text];
    case "run.paused":
      return [asked(event.questions)];
    case "run.aborted":
      return [event.reason, event.text];
    case "session.opened":
      return [event.source];
    case "prompt.accepted":
      return [textOf(event.prompt)];
    case "turn.started":
    case "turn.finished":
      return [event.turn];
    case "model.started":
      return [event.model];
    case "model.finished":
      return [event.finish, event.text];
    case "provider_tool.started":
      return [event.content.name, event.content.callId];
    case "provider_tool.finished":
      return [event.content.callId, event.content.status];
    case "call.ready":
      return [event.call.name, event.call.id];
    case "tool.started":
      return [event.name, event.call];
    case "tool.progress":
      return [event.call, JSON.stringify(event.data)];
    case "tool.finished":
      return [event.call, event.result.status, textOf(event.result)];
    case "approval.asked":
      return [event.call, asked([event])];
    case "approval.decided":
      return [event.call, event.decision, event.by, event.reason];
    case "notice":
      return [event.text];
    case "data":
      return [event.name, JSON.stringify(event.data)];
    case "warning":
      return [event.code, event.middleware, event.point];
    case "compact.started":
    case "compact.finished":
      return [event.trigger];
    case "file.changed":
      return [event.change, event.path];
    case "cwd.changed":
      return [event.to];
    case "instructions.loaded":
      return [event.path, event.reason];
    case "subagent.started":
      return [event.agent, event.call];
    case "subagent.finished":
      return [event.agent, event.call, event.status];
    case "hook.acted":
      return [event.middleware, event.point, event.call, event.did.join("+"), event.decided];
    default:
      return [];
  }
}

function asked(questions: readonly Question[]): string {
  return questions.flatMap(({ questions }) => questions).join("; ");
}

function flat(fact: unknown): string {
  return String(fact).replaceAll("\n", "\\n");
}
