/**
 * Runs a scenario: with and without the middleware, and alone and beside other runs.
 *
 * @module
 */
import { type Agent, type RunHandle, runHandle } from "../../core/agent.ts";
import { isInterrupt } from "../../core/interrupt.ts";
import { memory } from "../../core/memory.ts";
import type { Middleware } from "../../core/middleware.ts";
import type { RunResult } from "../../core/points.ts";
import type { AnyTool } from "../../core/tool.ts";
import { repairTranscript } from "../../core/transcript.ts";
import type { ModelRequest } from "../../model/model.ts";
import type { Event } from "../../protocol/event.ts";
import { collect } from "../collect.ts";
import { carries, checkedMiddleware } from "./checked_hooks.ts";
import { aYearLater, type Report, watchLeaks } from "./findings.ts";
import { defaultCalls, type Scenario, type Scene, testAgent, type TestCall } from "./scenarios.ts";
import { outline } from "../outline.ts";

// Compares a scenario with the same one without the middleware.

/** The options that are the same in every scenario. */
export interface TestSetup {
  /** Creates the middleware under test. */
  readonly make: () => Middleware;
  readonly vars: unknown;
  readonly use: readonly Middleware[];
  readonly tools: readonly AnyTool[];
  readonly calls: readonly TestCall[];
  /** Milliseconds that a run may take. */
  readonly time: number;
  /** The clock of the runs. */
  readonly now: () => number;
}

/** The outcome of a scenario. */
interface Outcome {
  /** The results of its runs: the first, its resumptions, and the second run of the session. */
  readonly results: readonly RunResult[];
  /** The result of the run in which the disturbance happened. */
  readonly disturbed: RunResult | undefined;
  readonly warnings: readonly Extract<Event, { type: "warning" }>[];
}

/** Runs `scenario` with and without the middleware, and reports broken laws. Returns false if it took too long. */
export async function runScenario(scenario: Scenario, setup: TestSetup, output: Report): Promise<boolean> {
  let reported = false;
  const report: Report = (...finding) => {
    reported ||= finding[0] !== "streams"; // the result is compared all the same
    output(...finding);
  };
  const leaks = watchLeaks();
  const scene = sceneFor(report);
  let outcome: Outcome;
  try {
    outcome = await execute(scenario, scene, setup, () => [checkedMiddleware(setup.make(), report, leaks.track)]);
    if (outcome.results.some(({ reason }) => reason === "deadline")) {
      report("passes", `a run did not end within ${setup.time} ms`);
      return false;
    }
    for (const leak of leaks.list()) report("clean", leak);
  } finally {
    leaks.end();
  }
  // the result of the run is compared only if no hook broke a law: it would repeat that
  if (!reported && isComparable(scenario, outcome)) {
    compare(scenario, scene, outcome, await execute(scenario, sceneFor(() => {}), withoutExtras(setup), () => []));
  }
  return true;
}

/** Returns true if the outcome has what may differ without the middleware: a warning, a failure, or an end that a law prescribes. */
function isComparable({ law }: Scenario, { results, disturbed, warnings }: Outcome): boolean {
  const hasFailed = results.some(({ status }) => status === "failed");
  return warnings.length > 0 || hasFailed || law !== undefined && disturbed !== undefined;
}

/** Returns the setup without the parts that only the middleware needs. */
function withoutExtras(setup: TestSetup): TestSetup {
  return { ...setup, use: [], tools: [], calls: [] };
}

interface LiveScene extends Scene {
  readonly signal: AbortSignal;
}

function sceneFor(report: Report): LiveScene {
  const controller = new AbortController();
  const scene = {
    signal: controller.signal,
    trouble: new Error("trouble"),
    happened: false,
    stop() {
      scene.happened = true;
      controller.abort();
    },
    report,
  };
  return scene;
}

/** Runs a scenario to its end. A paused run is resumed by another agent, from a store. */
async function execute(
  { cast, person: type = "approve", twice = false }: Scenario,
  scene: LiveScene,
  { vars, use, tools, calls: more, time, now }: TestSetup,
  make: () => readonly Middleware[],
): Promise<Outcome> {
  const { outer, inner, calls = defaultCalls, first, limits, tools: sceneTools = [] } = cast?.(scene) ?? {};
  const onError = () => {}; // scenarios fail on purpose
  const options = { session: "test", store: memory(), vars, signal: scene.signal, onError };
  const results: RunResult[] = [];
  const warnings: Outcome["warnings"][number][] = [];
  let disturbed: RunResult | undefined;

  const nextAgent = () =>
    testAgent({
      use: [...outer ? [outer] : [], ...use, ...make(), ...inner ? [inner] : []],
      tools: [...sceneTools, ...tools],
      calls: calls.length > 0 ? [...calls, ...more] : [],
      first: results.length === 0 ? first : undefined,
      limits: { time, grace: 200, ...limits },
      now,
      onRequest: ({ messages }) => check(messages, "the model was sent ", scene.report),
    });

  async function finish(handle: RunHandle<unknown>): Promise<RunResult> {
    const before = scene.happened;
    for await (const event of handle.events) if (event.type === "warning") warnings.push(event);
    const result = await handle.result;
    results.push(result);
    check(result.messages, "", scene.report);
    if (scene.happened && !before) disturbed = result;
    return result;
  }

  let result = await finish(nextAgent().run({ ...options, prompt: "Play" }));
  for (let round = 0; result.status === "paused" && round < 5; round++) {
    const answers = result.questions.flatMap(({ callId }) => callId === undefined ? [] : [{ callId, type }]);
    result = await finish(nextAgent().resume({ ...options, answers }));
  }
  if (twice) await finish(nextAgent().run({ ...options, prompt: "Play" }));
  return { results, disturbed, warnings };
}

function check(messages: RunResult["messages"], prefix: string, report: Report): void {
  const [problem, ...more] = repairTranscript(messages).problems;
  if (problem) report("valid", `${prefix}${problem}${more.length > 0 ? " and more" : ""}`);
}

/** Reports where an outcome differs from the outcome without the middleware. */
function compare({ law }: Scenario, { trouble, report }: Scene, outcome: Outcome, plain: Outcome): void {
  for (const { code, message, point } of outcome.warnings) {
    if (plain.warnings.some((warning) => warning.code === code)) continue;
    if (code === "transcript.repaired") report("valid", message, point);
    else if (code === "hook.abandoned" || code === "tool.abandoned") report("stops", message, point);
  }
  for (const { status, error } of outcome.results) {
    if (status !== "failed" || plain.results.some(({ status }) => status === "failed")) continue;
    if (!isInterrupt(error) && !carries(error, trouble)) report("passes", `the run failed: ${error}`);
  }
  const [is, was] = [outcome.disturbed?.status, plain.disturbed?.status];
  if (law && is !== undefined && is !== was) report(law, `the run was ${is}, and without it ${was}`);
}

// Isolation: a run beside other runs must do the same as alone.

const prompts = ["Alpha", "Beta"] as const;

/** Executes a run of an agent of its own, and returns it as lines. */
export async function recordRun(setup: TestSetup, report: Report, prompt: string = prompts[0]): Promise<Lines> {
  return await recordedLines(testGroup(setup, report), prompt);
}

/** Executes two runs alone, then in parallel and one after another on one agent. Reports differences, also to `first`: a run before all others. */
export async function checkIsolation(setup: TestSetup, first: Lines, output: Report): Promise<void> {
  let isApart = false;
  const report: Report = (law, ...finding) => {
    isApart ||= law === "apart";
    output(law, ...finding);
  };
  const alone = [];
  for (const prompt of prompts) alone.push(await recordRun(setup, report, prompt));
  compareRuns({ law: "apart", when: "after runs of other agents" }, first, alone[0], report);
  const shared = testGroup(setup, report);
  const beside = await Promise.all(prompts.map((prompt) => recordedLines(shared, prompt)));
  for (const [index, prompt] of prompts.entries()) {
    compareRuns({ law: "apart", when: "beside another one" }, alone[index], beside[index], report);
    const after = await recordedLines(shared, prompt);
    compareRuns({ law: "apart", when: "after another one" }, alone[index], after, report);
  }
  if (isApart) return; // the runs differ anyway
  const later = await aYearLater(() => recordRun(setup, () => {}));
  compareRuns({ law: "clock", when: "a year later" }, first, later, report);
}

/** A run as lines: first its outline, then everything. */
type Lines = readonly string[];

interface TestGroup {
  readonly assistant: Agent<unknown, unknown>;
  readonly vars: unknown;
  readonly startedAt: number;
  /** The requests to the model, by session. */
  readonly requests: ReadonlyMap<string, readonly unknown[]>;
}

function testGroup({ make, vars, use, tools, calls, time, now }: TestSetup, report: Report): TestGroup {
  const requests = new Map<string, unknown[]>();
  const assistant = testAgent({
    use: [...use, checkedMiddleware(make(), report, () => {})],
    tools,
    calls: [...defaultCalls, ...calls],
    limits: { time },
    now,
    onRequest({ instructions, messages, tools, options }: ModelRequest, session) {
      requests.set(session, [...requests.get(session) ?? [], { instructions, messages, tools, options }]);
    },
  });
  return { assistant, vars, startedAt: now(), requests };
}

async function recordedLines(
  { assistant, vars, startedAt, requests }: TestGroup,
  prompt: string,
): Promise<Lines> {
  const options = { prompt, vars, startedAt, onError: () => {} }; // some calls fail on purpose
  const handle = runHandle((sink) => assistant.start(options, sink));
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

function compareRuns(
  { law, when }: { readonly law: "apart" | "clock"; readonly when: string },
  alone: Lines = [],
  other: Lines = [],
  report: Report,
): void {
  const index = alone.findIndex((line, index) => line !== other[index]);
  const [was, is] = [alone[index] ?? "nothing more", other[index] ?? "nothing more"];
  if (index >= 0) report(law, `${when}, a run has ${shown(is, was)}, and alone ${shown(was, is)}`);
}

/** Returns the part of a line that differs from `other`. */
function shown(line: string, other: string): string {
  const same = [...line].findIndex((character, index) => character !== other[index]);
  const start = Math.max(0, same - 40);
  return line.length > 120 ? `…${line.slice(start, start + 80)}…` : `"${line}"`;
}
