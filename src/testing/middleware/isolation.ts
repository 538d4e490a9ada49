/**
 * Isolation: a run beside other runs must do the same as alone.
 *
 * @module
 */
import type { Agent } from "../../core/agent.ts";
import type { ModelRequest } from "../../model/model.ts";
import type { Event } from "../../protocol/event.ts";
import { collect } from "../collect.ts";
import { checkedMiddleware } from "./checked_hooks.ts";
import type { Report } from "./findings.ts";
import { outline } from "../outline.ts";
import type { TestSetup } from "./run_scenario.ts";
import { defaultCalls, testAgent } from "./test_agent.ts";

const prompts = ["Alpha", "Beta"];

/** Executes two runs alone, then in parallel and one after another on one agent, and reports differences. */
export async function checkIsolation(setup: TestSetup, report: Report): Promise<void> {
  const alone = [];
  for (const prompt of prompts) alone.push(await record(testGroup(setup, report), prompt));
  const shared = testGroup(setup, report);
  const beside = await Promise.all(prompts.map((prompt) => record(shared, prompt)));
  for (const [index, prompt] of prompts.entries()) {
    compare("beside another one", alone[index], beside[index], report);
    compare("after another one", alone[index], await record(shared, prompt), report);
  }
}

interface TestGroup {
  readonly assistant: Agent<unknown, unknown>;
  readonly vars: unknown;
  /** The requests to the model, by session. */
  readonly requests: ReadonlyMap<string, readonly unknown[]>;
}

function testGroup({ make, vars, use, tools, calls, time }: TestSetup, report: Report): TestGroup {
  const requests = new Map<string, unknown[]>();
  const assistant = testAgent({
    use: [...use, checkedMiddleware(make(), report, () => {})],
    tools,
    calls: [...defaultCalls, ...calls],
    limits: { time },
    onRequest({ instructions, messages, tools, options }: ModelRequest, session) {
      requests.set(session, [...requests.get(session) ?? [], { instructions, messages, tools, options }]);
    },
  });
  return { assistant, vars, requests };
}

/** Executes a run, and returns it as lines: first its outline, then everything. */
async function record({ assistant, vars, requests }: TestGroup, prompt: string): Promise<readonly string[]> {
  const handle = assistant.run({ prompt, vars, onError: () => {} }); // some calls fail on purpose
  const { events: mixed, result: { status, text, messages } } = await collect(handle, { repairs: true });
  const events = mixed.toSorted((a, b) => workOf(a).localeCompare(workOf(b)));
  const asked = requests.get(handle.session) ?? [];
  return [...outline(events), ...[...events, ...asked, { status, text, messages }].map((each) => JSON.stringify(each))];
}

/** Returns the call of an event whose order differs between parallel calls. */
function workOf(event: Event): string {
  const works = event.type === "tool.progress" || event.type.startsWith("subagent.");
  return works && "call" in event && typeof event.call === "string" ? event.call : "";
}

function compare(when: string, alone: readonly string[] = [], other: readonly string[] = [], report: Report): void {
  const index = alone.findIndex((line, index) => line !== other[index]);
  const [was, is] = [alone[index] ?? "nothing more", other[index] ?? "nothing more"];
  if (index >= 0) report("apart", `${when}, a run has ${shown(is, was)}, and alone ${shown(was, is)}`);
}

/** Returns the part of a line that differs from `other`. */
function shown(line: string, other: string): string {
  const same = [...line].findIndex((character, index) => character !== other[index]);
  const start = Math.max(0, same - 40);
  return line.length > 120 ? `…${line.slice(start, start + 80)}…` : `"${line}"`;
}
