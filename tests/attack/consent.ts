/**
 * Attacks on the word of a person: random guards, hooks, answers, edits and "always allow" around tools, also of subagents, with guards that fail when a run
 * continues. A model of what the person was asked decides what may run.
 *
 * @module
 */
import {
  agent,
  allow,
  type AnyTool,
  ask,
  deny,
  memory,
  type Middleware,
  type PersonAnswer,
  type Question,
  tool,
  type ToolExecutionContext,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import * as z from "zod";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

/** The numbers that inputs contain are below this one. */
const numbers = 6;

/** The decision of a guard about a number: "answer" allows calls that inner guards ask about, and a number is an edit. */
type Decision = "pass" | "allow" | "ask" | "deny" | "answer" | number;

/** A guard, as the model knows it. Guards may share a name. */
interface Guard {
  readonly id: string;
  readonly name: string;
  /** True if its questions have keys, and texts that change. */
  readonly isKeyed: boolean;
  /** The decisions in even legs and in odd ones. */
  readonly decisions: readonly (readonly Decision[])[];
  /** The legs in which it fails. */
  readonly fails: ReadonlySet<number>;
}

/** An answer of the person, as the model knows it. */
interface Word {
  readonly place: string;
  readonly path: string;
  readonly tool: string;
  readonly number: number;
  readonly texts: readonly string[];
  readonly edit?: number;
  readonly always?: "tool" | "input" | undefined;
}

/** The state of an attempt. */
interface Attempt {
  leg: number;
  /** The number of questions so far. */
  asked: number;
  readonly questions: Question[];
  readonly words: Word[];
  /** The calls that the person denied or answered. */
  readonly closed: Set<string>;
  readonly problems: string[];
  /** The number of calls that ran. */
  ran: number;
}

function guardOf({ one, below }: Chance, id: string): Guard {
  const decide = () => one<Decision>(["pass", "pass", "allow", "ask", "ask", "ask", "deny", "answer", below(numbers)]);
  const table = Array.from({ length: numbers }, decide);
  const isMoody = below(3) === 0;
  return {
    id,
    name: one(["guard", "guard", id]),
    isKeyed: below(2) === 0,
    decisions: [table, isMoody ? Array.from({ length: numbers }, decide) : table],
    fails: new Set([1, 2, 3, 4, 5, 6].filter(() => !isMoody && below(8) === 0)),
  };
}

/** Returns the decision of a guard about a number in a leg. */
function decisionOf({ decisions }: Guard, number: number, leg: number): Decision {
  return decisions[leg % 2]?.[number] ?? "pass";
}

function kindOf(number: number): string {
  return number % 2 ? "odd" : "even";
}

/** Returns the text of the question of a guard about a number, which is its identity in the model. */
function questionOf({ id }: Guard, number: number): string {
  return `${id} asks about ${kindOf(number)} numbers`;
}

function numberIn(input: unknown): number | undefined {
  const { n } = Object(input);
  return typeof n === "number" ? n : undefined;
}

/** Creates the middleware of a guard. */
function middlewareOf(guard: Guard, attempt: Attempt): Middleware {
  const { name, isKeyed, fails } = guard;
  return {
    name,
    async approval(ctx, next) {
      if (fails.has(attempt.leg)) throw new Error("The guard is down");
      const number = numberIn(ctx.input);
      const decision = number === undefined ? "pass" : decisionOf(guard, number, attempt.leg);
      if (typeof decision === "number") {
        return decision === number ? await next() : allow({ input: { n: String(decision), more: 1 } });
      }
      if (decision === "deny") return deny("No.");
      if (decision === "allow") return allow();
      if (decision === "ask") {
        const text = questionOf(guard, number ?? 0);
        return isKeyed ? ask(`${text} #${attempt.asked++}`, { key: kindOf(number ?? 0) }) : ask(text);
      }
      const below = await next();
      return decision === "answer" && below.type === "ask" ? allow() : below;
    },
  };
}

/** Creates a hook that changes numbers. */
function hookOf({ below }: Chance): Middleware[] {
  if (below(2) === 0) return [];
  const changes = Array.from({ length: numbers }, (_, number) => below(3) === 0 ? below(numbers) : number);
  return [{
    name: "hook",
    tool(ctx, next) {
      const { n } = Object(ctx.input);
      return n === undefined ? next() : next({ input: { ...Object(ctx.input), n: changes[Number(n)] } });
    },
  }];
}

/** Returns the verdict of all guards about a number: the open questions, a denial or an edit. */
function verdictOf(
  guards: readonly Guard[],
  { name, number, leg }: { readonly name: string; readonly number: number; readonly leg: number },
): readonly string[] | "deny" | "edit" {
  let open = asksItself(name, number) ? [`Run ${name}?`] : [];
  let edits = false;
  for (const guard of guards.toReversed()) {
    const decision = decisionOf(guard, number, leg);
    if (decision === "deny") return "deny";
    if (decision === "ask") open.push(questionOf(guard, number));
    if (decision === "answer") open = [];
    if (typeof decision === "number" && decision !== number) edits = true;
  }
  return edits ? "edit" : open;
}

function asksItself(name: string, number: number): boolean {
  return name === "pay" && number > 0;
}

/** Notes a problem if a call may not run that runs. */
function check(attempt: Attempt, guards: readonly Guard[], name: string, number: number, ctx: ToolExecutionContext) {
  const { words, closed, problems, questions, leg } = attempt;
  attempt.ran++;
  const place = placeOf(ctx.run, ctx.callId);
  const path = ctx.run.parent ? [...ctx.run.path.slice(1), ctx.run.agent].join() : "";
  const problem = (why: string) => problems.push(`${name}(${number}) ran at ${place} in leg ${leg}: ${why}`);
  const verdict = verdictOf(guards, { name, number, leg });
  if (closed.has(place)) problem("the person closed it");
  if (typeof verdict === "string") problem(`a guard says ${verdict}`);
  const isSaved = questions.some(({ callId, input }) => callId === place && numberIn(input) === number);
  if (!isSaved && guards.some(({ fails }) => fails.has(leg))) problem("a guard failed");
  for (const text of typeof verdict === "string" ? [] : verdict) {
    const isAnswered = words.some((word) =>
      word.place === place && word.tool === name &&
      (word.edit === undefined ? word.number === number && word.texts.includes(text) : word.edit === number)
    );
    const isRuled = words.some((word) =>
      word.always && word.path === path && word.tool === name && word.texts.includes(text) &&
      (word.always === "tool" || (word.edit ?? word.number) === number)
    );
    if (!isAnswered && !isRuled) problem(`the person was not asked "${text}"`);
  }
}

/** Returns the path of ids of a call. */
function placeOf({ parent, call }: ToolExecutionContext["run"], id: string): string {
  return parent && call !== undefined ? `${placeOf(parent, call)}/${id}` : id;
}

const ids = ["a", "b", "a/b", "a/a", "", "c"] as const;

function modelOf(chance: Chance, children: readonly string[]) {
  const { one, below } = chance;
  const call = () => {
    const name = one(["pay", "list", "pay", ...children]);
    const input = children.includes(name)
      ? { prompt: "Go" }
      : { n: one<unknown>([below(numbers), `${below(numbers)}`]), more: 1 };
    return { id: one(ids), name, input };
  };
  const response = () => [{ calls: Array.from({ length: 1 + below(3) }, call) }, "Done."];
  return scripted(...Array.from({ length: 8 }, response).flat());
}

/** Schemas that convert what the model, a guard or a person wrote. */
const schemas: readonly [z.ZodType<{ n: number }>, ...z.ZodType<{ n: number }>[]] = [
  z.object({ n: z.coerce.number() }),
  z.object({ n: z.string().or(z.number()).transform(Number) }),
  z.preprocess((given) => ({ n: Number(Object(given).n) }), z.object({ n: z.number() })),
  z.object({ n: z.coerce.number(), more: z.unknown().optional() }).transform(({ n }) => ({ n })),
];

function toolsOf({ one }: Chance, attempt: Attempt, guards: readonly Guard[]): AnyTool[] {
  return ["pay", "list"].map((name) =>
    tool({
      name,
      description: "",
      input: one(schemas),
      ask: ({ n }) => asksItself(name, n),
      execute: ({ n }, ctx) => void check(attempt, guards, name, n, ctx),
    })
  );
}

/** Answers a question, and notes the answer. */
function answerOf({ one, below }: Chance, question: Question, { words, closed }: Attempt): PersonAnswer {
  const { callId = "", tool = "", input, questions, path = [] } = question;
  const number = numberIn(input) ?? -1;
  const texts = questions.map((text) => text.replace(/ #\d+$/, ""));
  const word = { place: callId, path: path.join(), tool, number, texts };
  const always = one([undefined, undefined, "tool", "input"] as const);
  switch (one(["approve", "approve", "approve", "edit", "same", "deny", "reply"])) {
    case "deny":
      closed.add(callId);
      return { type: "deny", callId };
    case "reply":
      closed.add(callId);
      return { type: "reply", callId, text: "Never mind" };
    case "edit": {
      const edit = below(numbers);
      words.push(edit === number ? { ...word, always } : { ...word, edit, always });
      return { type: "approve", callId, input: { n: edit }, ...(always && { always }) };
    }
    case "same":
      words.push({ ...word, always });
      return { type: "approve", callId, input, ...(always && { always }) };
    default:
      words.push({ ...word, always });
      return { type: "approve", callId, ...(always && { always }) };
  }
}

/** Runs random agents. Fails if a tool runs with an input that no guard allows, and that the person was not asked about in this form. */
export const consent: Attack = {
  name: "consent",
  async attempt(chance) {
    const { below } = chance;
    const attempt: Attempt = { leg: 0, asked: 0, questions: [], words: [], closed: new Set(), problems: [], ran: 0 };
    const guardsOf = (owner: string) =>
      Array.from({ length: below(4) }, (_, index) => guardOf(chance, `${owner} ${index}`));
    const outer = guardsOf("root");
    const useOf = (
      guards: readonly Guard[],
    ) => [...hookOf(chance), ...guards.map((guard) => middlewareOf(guard, attempt))];
    const children = ["clerk", "office"].slice(0, below(3)).map((name) => {
      const own = guardsOf(name);
      const tools = toolsOf(chance, attempt, [...outer, ...own]);
      return asTool(agent({ name, model: modelOf(chance, []), tools, use: useOf(own) }), { description: "Helps" });
    });
    const model = modelOf(chance, children.map(({ name }) => name));
    const root = agent({
      name: "root",
      model,
      tools: [...toolsOf(chance, attempt, outer), ...children],
      use: useOf(outer),
    });
    const options = { session: "s", store: memory(), onError: () => {} };
    for (let prompt = 0; prompt < 3; prompt++) {
      attempt.questions.length = 0;
      let result = await root.run({ ...options, prompt: "Go" }).result;
      for (let legs = 0; legs < 6 && result.status === "paused"; legs++) {
        attempt.questions.push(...result.questions);
        const answers = result.questions.filter(() => below(4) > 0).map((question) =>
          answerOf(chance, question, attempt)
        );
        attempt.leg++;
        result = await root.resume({ ...options, answers }).result;
        expect(result.status !== "failed", () => `it failed: ${result.error}`);
      }
    }
    expect(attempt.problems.length === 0, () => attempt.problems.join("; "));
    return 1;
  },
};
