/**
 * Reading the outputs of hooks: of one hook, of hooks in the background, and of several together.
 *
 * @module
 */
import * as z from "zod";
import type { Decision, Dialect } from "./dialect.ts";
import { guardsCall, type HookEvent, type HookInput } from "./events.ts";
import { type Fields, joinLines, objectOf, readFields, unknownMembers } from "../kit/answers.ts";
import { type ForeignDecision, foreignDecision } from "../kit/denial.ts";
import type { Run, Scope } from "../../../mod.ts";
import { isObject, startTimer } from "../../../src/core/kit.ts";

// Hooks that continue in the background of a run.

/** Work in the background. */
export interface Work {
  readonly done: Promise<unknown>;
  /** Stops it: `done` settles soon afterwards. */
  readonly stop?: () => void;
  /** Whether the end of the run does not wait for it. */
  readonly isDetached?: boolean;
}

/** Creates the work in the background of runs. */
export function backgroundOf() {
  const ongoing = new WeakMap<Run, Set<Work>>();
  return {
    /** Adds work. A failure goes to `onError`, unless the run was stopped. */
    add({ run, signal }: Pick<Scope, "run" | "signal">, { done, ...rest }: Work): void {
      const all = ongoing.get(run) ?? new Set();
      ongoing.set(run, all);
      const settled = done.catch((error) => {
        if (!signal.aborted) run.report(error);
      }).finally(() => all.delete(work));
      const work: Work = { done: settled, ...rest };
      all.add(work);
    },
    /** Waits for the work of a run. Stops it after `grace` milliseconds. */
    async rest(run: Run, grace: number): Promise<void> {
      const all = [...ongoing.get(run) ?? []];
      if (all.length === 0) return;
      for (const { isDetached, stop } of all) if (isDetached) stop?.();
      const timer = startTimer(() => all.forEach(({ stop }) => stop?.()), grace);
      await Promise.all(all.map(({ done }) => done)); // they never reject: `add` reports failures
      clearTimeout(timer);
    },
  };
}

// Reads the output of one hook: each field is validated, and a denial in another form is found.

const object = z.looseObject({});
const anything = z.unknown().refine((value) => value !== null);
const text = z.string().transform((text) => text.length > 10_000 ? `${text.slice(0, 10_000).toWellFormed()}…` : text);
/** Accepts one of `words`, or its older name. */
const decisionWord = <const T extends string>(...words: readonly T[]) =>
  z.preprocess((word) => word === "approve" ? "allow" : word === "block" ? "deny" : word, z.enum(words));

const common = {
  continue: z.boolean(),
  stopReason: text,
  suppressOutput: z.boolean(),
  systemMessage: text,
  decision: decisionWord("allow", "deny", "ask"),
  reason: text,
  hookSpecificOutput: object,
};

const specific = {
  permissionDecision: decisionWord("allow", "deny", "ask", "defer"),
  permissionDecisionReason: text,
  updatedInput: object,
  additionalContext: text,
  updatedToolOutput: anything,
  updatedMCPToolOutput: anything,
  decision: object,
  retry: z.boolean(),
  watchPaths: z.array(z.string()),
  initialUserMessage: z.string(),
  sessionTitle: z.string(),
  worktreePath: z.string(),
  displayContent: z.string(),
};

/** The answer to a server, at the two events that have one. */
const elicited = { action: z.enum(["accept", "decline", "cancel"]), content: object };

const isElicitation = (event: HookEvent) => event === "Elicitation" || event === "ElicitationResult";

const permission = {
  behavior: decisionWord("allow", "deny"),
  updatedInput: object,
  updatedPermissions: z.array(z.unknown()),
  message: text,
  interrupt: z.boolean(),
};

/** The parsed answer of a hook in place of a person. */
export type Permission = Fields<typeof permission>;

/** The valid fields of an output. */
interface Output extends Fields<Omit<typeof common, "hookSpecificOutput">> {
  /** The fields of the event. */
  readonly specific: Omit<Fields<typeof specific>, "decision"> & {
    readonly permission?: Permission;
    readonly elicited?: Fields<typeof elicited>;
  };
}

/** The key of the result of a hook that continues in the background and will answer later: a process. */
export const laterAnswer: unique symbol = Symbol("later answer");

/** The answer of a hook that continues in the background. */
export interface BackgroundAnswer {
  readonly async: true;
  readonly [laterAnswer]: Work;
}

/** Returns the work of a hook that continues in the background and will answer later. */
export function backgroundWork(returned: unknown): Work | undefined {
  const isLater = typeof returned === "object" && returned !== null && laterAnswer in returned;
  return isLater ? (returned as BackgroundAnswer)[laterAnswer] : undefined; // only command handlers know the symbol
}

/** A parsed output, the names of its invalid parts, and a text that names its unknown members. */
export interface ReadOutput {
  readonly output?: Output;
  readonly invalid: readonly string[];
  readonly unknown?: string | undefined;
}

/** Reads the output of a hook that the run waits for. A denial in the form of another system counts at events that guard a call or a prompt. */
export function readAnswer(returned: unknown, input: HookInput, dialect: Dialect): ReadOutput {
  const { hook_event_name: event } = input;
  const read = readOutput(returned, event, dialect.voidsInvalid);
  if (isObject(returned) && returned.async === true) return read;
  const isVoid = dialect.voidsInvalid && read.invalid.length > 0;
  const known = readMembers(returned, event, dialect.ending.includes(event) && !isVoid);
  const found = guardsCall(event) ? foreignDecision(returned, (member) => known.has(member)) : undefined;
  const ownMembers = [...Object.keys(common), ...Object.keys(specific), ...withoutEffect, ...Object.keys(input)];
  const answerMembers = isElicitation(event) ? Object.keys(elicited) : [];
  const ofEvent = [...Object.keys(specific), ...answerMembers, ...withoutEffect, "hookEventName"];
  const unknown = unknownMembers(withoutMember(returned, found), ownMembers) ??
    unknownMembers(withoutMember(objectOf(returned).hookSpecificOutput, found), ofEvent);
  if (!found) return { ...read, unknown };
  const problem = `${found.member} ${found.type === "deny" ? "denies" : "asks"} in the form of another system`;
  return { output: decided(read.output ?? { specific: {} }, found), invalid: [...read.invalid, problem], unknown };
}

/** Members of outputs in the home systems that have no effect here; `sessionTitle` has one in hookSpecificOutput alone. */
const withoutEffect = [
  ...["async", "asyncTimeout", "terminalSequence", "sessionTitle", "reloadSkills", "suppressOriginalPrompt"],
  "classifierContext",
];

type UnknownFields = Readonly<Record<string, unknown>>;

/** Returns the members whose meaning at an event is known. `ends` says whether `continue: false` ends the run. */
function readMembers(returned: unknown, event: HookEvent, ends: boolean): ReadonlySet<string> {
  const { decision, hookSpecificOutput, continue: continues } = objectOf(returned);
  const { hookEventName, permissionDecision, decision: permissionGiven } = objectOf(hookSpecificOutput);
  const isOwn = (at: HookEvent) => event === at && hookEventName === at;
  const isValid = (schema: z.core.$ZodType, value: unknown) => z.safeParse(schema, value).success;
  const read: readonly (readonly [member: string, isRead: boolean])[] = [
    ["decision", isValid(common.decision, decision)],
    ["continue", ends && typeof continues === "boolean"],
    [
      "hookSpecificOutput.permissionDecision",
      isOwn("PreToolUse") && isValid(specific.permissionDecision, permissionDecision),
    ],
    [
      "hookSpecificOutput.decision.behavior",
      isOwn("PermissionRequest") && isValid(permission.behavior, objectOf(permissionGiven).behavior),
    ],
  ];
  return new Set(read.flatMap(([member, isRead]) => isRead ? [member] : []));
}

/** Returns an object without the member that decides, which is reported as such. */
function withoutMember(value: unknown, found: ForeignDecision | undefined): UnknownFields {
  const names = found?.member.split(".") ?? [];
  return Object.fromEntries(Object.entries(objectOf(value)).filter(([name]) => !names.includes(name)));
}

/** Adds a decision in the form of another system to an output, unless the output denies. */
function decided(output: Output, { type, reason }: ForeignDecision): Output {
  const { permission: _, ...specific } = output.specific;
  const { permissionDecision = output.decision } = specific;
  const because = reason === undefined ? {} : { permissionDecisionReason: reason };
  if (type === "ask" && permissionDecision === "deny") return output;
  if (type === "ask") return { ...output, specific: { ...specific, permissionDecision: "ask", ...because } };
  return {
    ...output,
    decision: "deny",
    ...(reason !== undefined && { reason }),
    specific: { ...specific, permissionDecision: "deny", ...because },
  };
}

/** Reads the output of a hook of `event`. With `voidsInvalid`, an invalid field leaves only a deny. A hook in the background has no output. */
export function readOutput(returned: unknown, event: HookEvent, voidsInvalid: boolean): ReadOutput {
  if (returned === undefined || returned === null) return { invalid: [] };
  if (!isObject(returned)) return { invalid: ["it is no object"] };
  if (returned.async === true) return { invalid: [] };
  const invalid: string[] = [];
  const onInvalid = (name: string, problem: string) => invalid.push(`${name} (${problem})`);
  const { hookSpecificOutput, ...rest } = readFields(common, returned, onInvalid);
  const fields = hookSpecificOutput ? specificFields(hookSpecificOutput, event, invalid, onInvalid) : {};
  const output = { ...rest, specific: fields };
  const isVoid = voidsInvalid && invalid.length > 0;
  for (const name of Object.keys(specific)) {
    if (!(name in common) && !withoutEffect.includes(name) && name in returned) {
      invalid.push(`${name} belongs in hookSpecificOutput`);
    }
  }
  return { output: isVoid ? denyIn(output) : output, invalid };
}

function specificFields(
  members: Readonly<Record<string, unknown>>,
  event: HookEvent,
  invalid: string[],
  onInvalid: (name: string, problem: string) => void,
): Output["specific"] {
  const { hookEventName: name } = members;
  if (name !== event) {
    invalid.push(`hookSpecificOutput ${name === undefined ? "has no hookEventName" : "is for another event"}`);
    return {};
  }
  const { decision, ...rest } = readFields(specific, members, onInvalid);
  if (isElicitation(event)) return { ...rest, elicited: readFields(elicited, members, onInvalid) };
  return decision ? { ...rest, permission: readFields(permission, decision, onInvalid) } : rest;
}

/** Returns the deny in an output, without anything else. */
function denyIn({ decision, reason, specific }: Output): Output {
  const { permissionDecision, permissionDecisionReason, permission } = specific;
  const because = <K extends string>(key: K, text: string | undefined) => text === undefined ? {} : { [key]: text };
  return {
    ...(decision === "deny" && { decision, ...because("reason", reason) }),
    specific: {
      ...(permissionDecision === "deny" &&
        { permissionDecision, ...because("permissionDecisionReason", permissionDecisionReason) }),
      ...(permission?.behavior === "deny" && { permission }),
    },
  };
}

/** Reads an answer in place of a person; undefined without a decision. `onForeign` receives the member that denies or asks in the form of another system. */
export function readPermission(value: unknown, onForeign: (member: string) => void): Permission | undefined {
  const answer = isObject(value) ? readFields(permission, value, () => {}) : {};
  const found = foreignDecision(value, (member) => member === "behavior" && answer.behavior !== undefined);
  if (!found) return answer.behavior && answer;
  onForeign(found.member);
  if (found.type === "ask") return answer.behavior === "deny" ? answer : undefined;
  return { behavior: "deny", ...(found.reason !== undefined && { message: found.reason }) };
}

// Combines the answers of the hooks of one event: blocks, context, the strictest decision, the last value.

/** The answer of one hook. */
export interface Answer extends Output {
  /** The order of arrival, from 0. */
  readonly order: number;
}

/** The answers of the hooks that ran, in the order of the configuration. */
export type Answers = readonly Answer[];

/** Returns the reasons of the hooks that block; undefined if none does. */
export function blockOf(answers: Answers): string | undefined {
  const blocking = answers.filter(({ decision }) => decision === "deny");
  return blocking.length === 0 ? undefined : joinLines(blocking.map(({ reason }) => reason)) ?? "Blocked by a hook.";
}

/** Returns the reasons of the hooks that end the run; undefined if none does, or if they cannot at this event. */
export function stopOf(answers: Answers, event: HookEvent, { ending }: Dialect): string | undefined {
  const stopping = ending.includes(event) ? answers.filter((answer) => answer.continue === false) : [];
  if (stopping.length === 0) return undefined;
  return joinLines(stopping.map(({ stopReason }) => stopReason)) ?? "Stopped by a hook.";
}

/** Returns the texts for the model. */
export function contextOf(answers: Answers): readonly string[] {
  return answers.flatMap(({ specific: { additionalContext } }) => additionalContext ? [additionalContext] : []);
}

/** Returns the strictest decision about a call, with the reasons of the hooks that made it. */
export function decisionOf(
  answers: Answers,
  decisions: readonly Decision[],
): { readonly decision: Decision; readonly reason: string | undefined } | undefined {
  const made = answers.flatMap(({ decision, reason, specific }) => {
    const { permissionDecision = decision, permissionDecisionReason = reason } = specific;
    return permissionDecision ? [{ decision: permissionDecision, reason: permissionDecisionReason }] : [];
  });
  const decision = decisions.findLast((each) => made.some(({ decision }) => decision === each));
  if (!decision) return undefined;
  return { decision, reason: joinLines(made.filter((each) => each.decision === decision).map(({ reason }) => reason)) };
}

/** Returns the last value that `pick` finds: last in the configuration or last to arrive, as the dialect says. */
export function lastOf<T>(answers: Answers, { last }: Dialect, pick: (answer: Answer) => T | undefined): T | undefined {
  const ordered = last === "given" ? answers.toSorted((a, b) => a.order - b.order) : answers;
  return ordered.map(pick).findLast((picked) => picked !== undefined);
}
