/**
 * Plays a scenario, and judges how it went.
 *
 * @module
 */
import type { RunHandle } from "../core/agent.ts";
import { isInterrupt } from "../core/interrupt.ts";
import type { Middleware, RunResult } from "../core/points.ts";
import { memory } from "../core/store.ts";
import type { AnyTool } from "../core/tool.ts";
import { repairTranscript } from "../core/mend.ts";
import type { Event } from "../protocol/event.ts";
import { collect } from "./collect.ts";
import { carries, inspected } from "./inspect.ts";
import type { Tell } from "./laws.ts";
import type { Scenario, Scene } from "./scenarios.ts";
import { stage, type StageCall, usualCalls } from "./stage.ts";
import { watch } from "./watch.ts";

/** What is the same in every scenario. */
export interface Kit {
  /** Makes the middleware under test. */
  readonly make: () => Middleware;
  readonly vars: unknown;
  readonly use: readonly Middleware[];
  readonly tools: readonly AnyTool[];
  readonly calls: readonly StageCall[];
  /** How long a run may take, in milliseconds. */
  readonly time: number;
}

/** How a scenario went. */
interface Outcome {
  /** What each of its runs came to: the first, those that resumed it, and another one of the session. */
  readonly results: readonly RunResult[];
  /** What the run came to in which it happened. */
  readonly struck: RunResult | undefined;
  readonly warnings: readonly Extract<Event, { type: "warning" }>[];
}

/** Plays `scenario` with the middleware and without it, and tells what the middleware breaks. Gives whether it came to its end in time. */
export async function play(scenario: Scenario, kit: Kit, report: Tell): Promise<boolean> {
  let told = false;
  const tell: Tell = (...finding) => {
    told = true;
    report(...finding);
  };
  const watching = watch();
  const scene = sceneFor(tell);
  let outcome: Outcome;
  try {
    outcome = await perform(scenario, scene, kit, () => [inspected(kit.make(), tell, watching.lend)]);
    if (outcome.results.some(({ reason }) => reason === "deadline")) {
      tell("passes", `a run did not end within ${kit.time} ms`);
      return false;
    }
    for (const what of watching.left()) tell("clean", what);
  } finally {
    watching.end();
  }
  // what was seen of a hook says more than what became of the run
  if (!told) judge(scenario, scene, outcome, await perform(scenario, sceneFor(() => {}), bare(kit), () => []));
  return true;
}

/** The same without anything that is there for the middleware. */
function bare(kit: Kit): Kit {
  return { ...kit, use: [], tools: [], calls: [] };
}

interface LiveScene extends Scene {
  readonly signal: AbortSignal;
}

function sceneFor(tell: Tell): LiveScene {
  const controller = new AbortController();
  const scene = {
    signal: controller.signal,
    trouble: new Error("trouble"),
    happened: false,
    stop() {
      scene.happened = true;
      controller.abort();
    },
    tell,
  };
  return scene;
}

/** Plays a scenario to its end. What is paused goes on with another agent, from what a store has kept. */
async function perform(
  { cast, person: type = "approve", twice = false }: Scenario,
  scene: LiveScene,
  { vars, use, tools, calls: more, time }: Kit,
  make: () => readonly Middleware[],
): Promise<Outcome> {
  const { above, beneath, calls = usualCalls, first, limits, tools: own = [] } = cast?.(scene) ?? {};
  const options = { session: "stage", store: memory(), vars, signal: scene.signal };
  const results: RunResult[] = [];
  const warnings: Outcome["warnings"][number][] = [];
  let struck: RunResult | undefined;

  const actors = () =>
    stage({
      use: [...above ? [above] : [], ...use, ...make(), ...beneath ? [beneath] : []],
      tools: [...own, ...tools],
      calls: calls.length > 0 ? [...calls, ...more] : [],
      first: results.length === 0 ? first : undefined,
      limits: { time, grace: 200, ...limits },
      onRequest: ({ messages }) => check(messages, "the model was sent ", scene.tell),
    });

  async function see(handle: RunHandle<unknown>): Promise<RunResult> {
    const before = scene.happened;
    const { events, result } = await collect(handle, { repairs: true });
    for (const event of events) if (event.type === "warning") warnings.push(event);
    results.push(result);
    check(result.messages, "", scene.tell);
    if (scene.happened && !before) struck = result;
    return result;
  }

  let result = await see(actors().run({ ...options, prompt: "Play" }));
  for (let round = 0; result.status === "paused" && round < 5; round++) {
    const answers = result.questions.flatMap(({ callId }) => callId === undefined ? [] : [{ callId, type }]);
    result = await see(actors().resume({ ...options, answers }));
  }
  if (twice) await see(actors().run({ ...options, prompt: "Play" }));
  return { results, struck, warnings };
}

function check(messages: RunResult["messages"], what: string, tell: Tell): void {
  const [problem, ...more] = repairTranscript(messages).problems;
  if (problem) tell("valid", `${what}${problem}${more.length > 0 ? " and more" : ""}`);
}

/** Compares how it went with how it goes without the middleware. */
function judge({ law }: Scenario, { trouble, tell }: Scene, outcome: Outcome, plain: Outcome): void {
  for (const { code, message, point } of outcome.warnings) {
    if (plain.warnings.some((warning) => warning.code === code)) continue;
    if (code === "transcript.repaired") tell("valid", message, point);
    else if (code === "hook.abandoned" || code === "tool.abandoned") tell("stops", message, point);
  }
  for (const { status, error } of outcome.results) {
    if (status !== "failed" || plain.results.some(({ status }) => status === "failed")) continue;
    if (!isInterrupt(error) && !carries(error, trouble)) tell("passes", `the run failed: ${error}`);
  }
  const [is, was] = [outcome.struck?.status, plain.struck?.status];
  if (law && is !== undefined && is !== was) tell(law, `the run was ${is}, and without it ${was}`);
}
