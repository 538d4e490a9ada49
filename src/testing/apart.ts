/**
 * Runs beside each other: each of them has to do what it does alone.
 *
 * @module
 */
import type { Agent } from "../core/agent.ts";
import type { ModelRequest } from "../model/model.ts";
import type { Event } from "../protocol/event.ts";
import { collect } from "./collect.ts";
import { inspected } from "./inspect.ts";
import type { Tell } from "./laws.ts";
import { outline } from "./outline.ts";
import type { Kit } from "./play.ts";
import { stage, usualCalls } from "./stage.ts";

const prompts = ["Alpha", "Beta"];

/** Plays two runs alone, and then beside each other and after each other on one agent; tells where they differ. */
export async function playApart(kit: Kit, tell: Tell): Promise<void> {
  const alone = [];
  for (const prompt of prompts) alone.push(await record(company(kit, tell), prompt));
  const shared = company(kit, tell);
  const beside = await Promise.all(prompts.map((prompt) => record(shared, prompt)));
  for (const [index, prompt] of prompts.entries()) {
    compare("beside another one", alone[index], beside[index], tell);
    compare("after another one", alone[index], await record(shared, prompt), tell);
  }
}

interface Company {
  readonly assistant: Agent<unknown, unknown>;
  readonly vars: unknown;
  /** What the model was asked, by session. */
  readonly requests: ReadonlyMap<string, readonly unknown[]>;
}

function company({ make, vars, use, tools, calls, time }: Kit, tell: Tell): Company {
  const requests = new Map<string, unknown[]>();
  const assistant = stage({
    use: [...use, inspected(make(), tell, () => {})],
    tools,
    calls: [...usualCalls, ...calls],
    limits: { time },
    onRequest({ instructions, messages, tools, options }: ModelRequest, session) {
      requests.set(session, [...requests.get(session) ?? [], { instructions, messages, tools, options }]);
    },
  });
  return { assistant, vars, requests };
}

/** What a run did, line by line: first as a person reads it, then all of it. */
async function record({ assistant, vars, requests }: Company, prompt: string): Promise<readonly string[]> {
  const handle = assistant.run({ prompt, vars });
  const { events: mixed, result: { status, text, messages } } = await collect(handle, { repairs: true });
  const events = mixed.toSorted((a, b) => workOf(a).localeCompare(workOf(b)));
  const asked = requests.get(handle.session) ?? [];
  return [...outline(events), ...[...events, ...asked, { status, text, messages }].map((each) => JSON.stringify(each))];
}

/** The call for whose work an event tells: calls work at once, in whatever order. */
function workOf(event: Event): string {
  const works = event.type === "tool.progress" || event.type.startsWith("subagent.");
  return works && "call" in event && typeof event.call === "string" ? event.call : "";
}

function compare(when: string, alone: readonly string[] = [], other: readonly string[] = [], tell: Tell): void {
  const index = alone.findIndex((line, index) => line !== other[index]);
  const [was, is] = [alone[index] ?? "nothing more", other[index] ?? "nothing more"];
  if (index >= 0) tell("apart", `${when}, a run has ${shown(is, was)}, and alone ${shown(was, is)}`);
}

/** As much of a line as says how it differs from `other`. */
function shown(line: string, other: string): string {
  const same = [...line].findIndex((character, index) => character !== other[index]);
  const start = Math.max(0, same - 40);
  return line.length > 120 ? `…${line.slice(start, start + 80)}…` : `"${line}"`;
}
