/**
 * The events that occur on a server: the fields that hooks cannot change, the form of their answers, and the events that never occur.
 *
 * @module
 */
import type { Rules } from "./frame.ts";
import type { Data } from "./patterns.ts";
import type { ModRun } from "./run.ts";
import { isObject } from "../../../src/core/kit.ts";

// The forms of answers.

/** Whether a value has a form. */
type Form = (value: unknown) => boolean;

const isText: Form = (value) => typeof value === "string";
const isFlag: Form = (value) => typeof value === "boolean";
const isTexts: Form = (value) => Array.isArray(value) && value.every(isText);
const optional = (form: Form): Form => (value) => value === undefined || form(value);
const listOf = (fields: Readonly<Record<string, Form>>): Form => (value) =>
  Array.isArray(value) &&
  value.every((item) => isObject(item) && Object.entries(fields).every(([name, form]) => form(item[name])));

/** Returns the problem of an answer whose fields do not have these forms. */
function problemIn(answer: Data, fields: Readonly<Record<string, Form>>): string | undefined {
  const wrong = Object.entries(fields).find(([name, form]) => !form(answer[name]));
  return wrong && `its "${wrong[0]}" is ${answer[wrong[0]] === undefined ? "missing" : "not valid"}`;
}

/** Returns a check of the fields of every answer. */
function fields(forms: Readonly<Record<string, Form>>): Rules["problem"] {
  return (answer) => problemIn(answer, forms);
}

/** Returns a check of answers that refuse with a text in the field `word`, or have `forms`. */
function refusingBy(word: string, forms: Readonly<Record<string, Form>>): Rules["problem"] {
  return (answer) => problemIn(answer, answer[word] === undefined ? forms : { [word]: isText });
}

// The events.

function callProblem(answer: Data): string | undefined {
  if (answer.deny !== undefined) return problemIn(answer, { deny: isText });
  const hasResult = answer.result !== undefined || answer.isError === true;
  return problemIn(answer, {
    result: () => hasResult,
    context: optional(isTexts),
    text: optional(isText),
    isError: optional(isFlag),
  });
}

/** The fields of a call that no hook may change. */
const callFields = ["tool", "tool_use_id", "agentId"];

const anything: Rules["problem"] = () => undefined;
const deny = (reason: string) => ({ deny: reason });

const rules: Readonly<Record<string, Partial<Rules>>> = {
  "tool.call": { pinned: callFields, problem: callProblem, refusal: deny },
  "tool.check": {
    pinned: ["tool", "input", "tool_use_id"],
    problem: fields({
      decision: (value) => value === "allow" || value === "ask" || value === "deny",
      reason: optional(isText),
    }),
    refusal: (reason) => ({ decision: "deny", reason }),
  },
  "tool.describe": {
    pinned: ["tool", "provider"],
    problem: fields({ description: isText, isDeferred: optional(isFlag) }),
  },
  "prompt.submit": {
    pinned: ["origin", "wait", "turnId"],
    problem(answer, called) {
      if (answer.drop !== undefined && called) return '"drop" comes after next()';
      return refusingBy("drop", { text: isText, context: optional(isTexts) })(answer, called);
    },
    refusal: (drop) => ({ drop }),
  },
  "prompt.compose": {
    pinned: ["model"],
    problem: fields({
      sections: listOf({
        id: (id) => isText(id) && id !== "",
        text: isText,
        scope: (scope) => scope === "shared" || scope === "session",
      }),
    }),
  },
  "prompt.section": { pinned: ["name"], problem: fields({ text: (text) => text === null || isText(text) }) },
  "prompt.context": {
    problem: fields({ blocks: listOf({ name: isText, text: isText }), instructionFiles: optional(Array.isArray) }),
  },
  "turn.start": { pinned: ["turnId"] },
  "turn.step": { pinned: ["turnId", "index", "messageCount", "agentId"] },
  "turn.complete": { pinned: ["turnId", "agentId"], problem: fields({ text: isText }) },
  "session.compact": {
    pinned: ["trigger", "agentId"],
    problem: refusingBy("skip", {
      messages: listOf({ role: (role) => role === "user" || role === "assistant", text: isText }),
    }),
  },
  "session.append": {
    pinned: ["door", "origin", "uuid", "agentId"],
    problem: fields({ message: (message) => isObject(message) && Array.isArray(message.content) }),
  },
  "agent.offer": { pinned: ["agent", "provider"], problem: fields({ isOffered: isFlag }) },
  "agent.spawn": {
    pinned: ["tool_use_id", "provider", "parentModel", "parentAgentId", "permissionMode", "fork", "name"],
    problem: refusingBy("deny", { model: isText }),
    refusal: deny,
  },
  "plugin.register": {
    pinned: ["name", "tier", "root", "version", "provenance", "uses"],
    problem: refusingBy("refuse", { allow: (value) => value === true }),
  },
  "session.start": {},
  "session.end": {},
};

/** The answer of a call of `$`: `{ value }`, also of undefined, or `{ deny }`. */
const callRules: Rules = {
  pinned: [],
  problem: (answer) => "value" in answer && answer.deny === undefined ? undefined : problemIn(answer, { deny: isText }),
};

/** Returns the rules of an event. Those without rules are calls of `$`. */
export function rulesOf(event: string): Rules {
  if (event === "classic.PreToolUse") return { pinned: callFields, problem: anything, refusal: deny };
  if (event === "classic.UserPromptSubmit") return { pinned: [], problem: anything, refusal: (block) => ({ block }) };
  if (event.startsWith("classic.")) return { pinned: [], problem: anything };
  const special = rules[event];
  return special ? { pinned: [], problem: anything, ...special } : callRules;
}

// Events that never occur on a server.

/** The reasons, by a pattern of the names. */
const never: readonly (readonly [RegExp, string])[] = [
  [/^(skill\.prompt|prompt\.(attachment|mention))$/, "there are no skills, reminders and mentions of files"],
  [/^session\.(receive|send|attach|detach|measure)$/, "there are no peers and no limits of an account"],
  [
    /^(prompt\.(fill|suggest|edit)|command\.(run|describe)|config\.(set|describe)|attribution\.text)$/,
    "no person types",
  ],
  [/^ui\.(render|resolve|press|input|select|message|scroll|focus)$/, "there is no screen"],
  [/^telemetry\./, "there is no telemetry"],
];

/** Returns the reason why an event never occurs; undefined for one that does. */
export function unsupported(event: string, run: ModRun): string | undefined {
  if (event.startsWith("classic.")) {
    const { classic } = run.options;
    if (!classic) return "the option classic is not set";
    return classic.events.includes(event) ? undefined : "a server has no such event";
  }
  if (event in rules || event === "engine.create") return undefined;
  const reason = never.find(([pattern]) => pattern.test(event))?.[1];
  if (reason) return `not supported on a server, since ${reason}`;
  return event in run.calls ? undefined : "the event is not known";
}
