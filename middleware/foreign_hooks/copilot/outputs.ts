/**
 * The outputs of hooks, as schemas, and the handlers that call the hooks.
 *
 * @module
 */
import * as z from "zod";
import type { HookHandler, HookInput, SessionHooks } from "./hooks.ts";
import { outermostRun, warnFailed, workingDirectory } from "../kit/adapter.ts";
import { readFields, unknownMembers, word } from "../kit/answers.ts";
import { textPart } from "../kit/calls.ts";
import { decisionInText, type ForeignDecision, foreignDecision } from "../kit/denial.ts";
import { type ContentPart, type Point, type ResultStatus, type Scope, textOf, type ToolResult } from "../../../mod.ts";
import { isObject } from "../../../src/core/kit.ts";

// Results of tools, as hooks receive and return them.

/** An image or a file in a result. */
export interface ToolBinaryResult {
  /** Its bytes in base64. */
  data: string;
  /** Its media type, such as `image/png`. */
  mimeType: string;
  /** Whether it is an image. */
  type: "image" | "resource";
  /** A description. */
  description?: string;
}

/** The outcome of a call. */
export type ToolResultType = "success" | "failure" | "rejected" | "denied" | "timeout";

/** A result. */
export interface ToolResultObject {
  /** The text for the model. */
  textResultForLlm: string;
  /** Content for the model, in place of the text: texts, and objects with `text`, or with `data` and `mimeType`. */
  resultForAssistant?: unknown[];
  /** Images and files for the model. */
  binaryResultsForLlm?: ToolBinaryResult[];
  /** The outcome of the call. */
  resultType: ToolResultType;
  /** The message of the error. */
  error?: string;
  /** A text for the person. */
  sessionLog?: string;
}

const statuses: Readonly<Record<ToolResultType, ResultStatus>> = {
  success: "ok",
  failure: "error",
  rejected: "denied",
  denied: "denied",
  timeout: "timeout",
};

/** Returns a successful result as hooks receive it. */
export function toHookResult(result: ToolResult): ToolResultObject {
  const binary = result.parts.flatMap((part): ToolBinaryResult[] => {
    if (part.type !== "media" || part.data === undefined) return [];
    const { data, mediaType: mimeType } = part;
    return [{ data, mimeType, type: mimeType.startsWith("image/") ? "image" : "resource" }];
  });
  return {
    textResultForLlm: textOf(result),
    resultType: "success",
    ...(binary.length > 0 && { binaryResultsForLlm: binary }),
  };
}

const media = z.object({ data: z.string(), mimeType: z.string() })
  .transform(({ data, mimeType: mediaType }): ContentPart => ({ type: "media", mediaType, data }));
const content = z.array(z.union([
  z.string().transform(textPart),
  z.object({ text: z.string() }).transform(({ text }) => textPart(text)),
  media,
  z.unknown().transform((value) => textPart(JSON.stringify(value) ?? "")),
]));
const form = z.object({
  textResultForLlm: z.string().optional().catch(undefined),
  resultForAssistant: content.optional().catch(undefined),
  binaryResultsForLlm: z.array(media).optional().catch(undefined),
  resultType: z.enum(["success", "failure", "rejected", "denied", "timeout"]).optional().catch(undefined),
  sessionLog: z.string().optional().catch(undefined),
});

/** Applies `modifiedResult` to a result. Absent fields keep their values. Another value becomes a result: its text, or its JSON. */
export function modified(result: ToolResult, value: unknown): ToolResult {
  const { data = {} } = form.safeParse(value);
  const { textResultForLlm: text, resultForAssistant, binaryResultsForLlm, resultType, sessionLog: person } = data;
  if ([text, resultForAssistant, binaryResultsForLlm, resultType].every((field) => field === undefined)) {
    return { ...result, parts: [textPart(typeof value === "string" ? value : JSON.stringify(value) ?? "")] };
  }
  const binary = binaryResultsForLlm ?? result.parts.filter((part) => part.type === "media");
  return {
    ...result,
    status: resultType ? statuses[resultType] : result.status,
    parts: resultForAssistant?.length ? resultForAssistant : [textPart(text ?? textOf(result)), ...binary],
    ...(person !== undefined && { person }),
  };
}

/** Returns a result without its content. */
export function withheld(result: ToolResult): ToolResult {
  return { ...result, parts: [textPart("The output was withheld by a hook.")] };
}

// Reads the output of each hook by a table of its fields, and finds a denial in another form.

/** The name of a hook. */
export type HookName = keyof SessionHooks;

/** The output of each hook. */
type Outputs = {
  readonly [K in HookName]: Exclude<Awaited<ReturnType<NonNullable<SessionHooks[K]>>>, null | void>;
};

type Schemas = {
  readonly [K in HookName]: { readonly [F in keyof Outputs[K]]-?: z.core.$ZodType<Required<Outputs[K]>[F]> };
};

const text = z.string();
const flag = z.boolean();
const fields = z.record(z.string(), z.unknown());
const anything = z.unknown().refine((value) => value !== null);

const schemas: Required<Schemas> = {
  onSessionStart: { additionalContext: text, modifiedConfig: fields },
  onUserPromptSubmitted: { modifiedPrompt: text, additionalContext: text, suppressOutput: flag },
  onUserPromptTransformed: { modifiedTransformedPrompt: text },
  onPreToolUse: {
    permissionDecision: word("allow", "deny", "ask"),
    permissionDecisionReason: text,
    modifiedArgs: anything,
    additionalContext: text,
    suppressOutput: flag,
  },
  onPreMcpToolCall: { metaToUse: fields.nullable() },
  onPostToolUse: { modifiedResult: anything, additionalContext: text, suppressOutput: flag },
  onPostToolUseFailure: { additionalContext: text },
  onErrorOccurred: {
    suppressOutput: flag,
    errorHandling: word("retry", "skip", "abort"),
    retryCount: z.number().min(0),
    userNotification: text,
  },
  onAgentStop: { decision: word("block", "allow"), reason: text },
  onSubagentStart: { additionalContext: text },
  onSubagentStop: { decision: word("block", "allow"), reason: text, modifiedResponse: text },
  onPreCompact: {},
  onPermissionRequest: { behavior: word("allow", "deny"), message: text, interrupt: flag },
  onNotification: { additionalContext: text },
  onSessionEnd: { suppressOutput: flag, cleanupActions: z.array(z.union([text, fields])), sessionSummary: text },
};

/** The names of all hooks. */
export const hookNames = Object.keys(schemas) as readonly HookName[]; // the type of `schemas` says so

/** The hooks before a call or a prompt: there, a denial counts in whatever form. */
const guards: readonly HookName[] = [
  ...["onPreToolUse", "onPermissionRequest", "onPreMcpToolCall"] as const,
  ...["onUserPromptSubmitted", "onUserPromptTransformed"] as const,
];

/** Returns the decision in an output that has the form of another system, if the hook guards a call or a prompt. */
export function foreignOutput(name: HookName, output: unknown): ForeignDecision | undefined {
  if (!guards.includes(name)) return undefined;
  const isValid = (decision: unknown) => z.safeParse(schemas.onPreToolUse.permissionDecision, decision).success;
  return foreignDecision(
    output,
    (member) =>
      isObject(output) &&
      (member === "permissionDecision" && name === "onPreToolUse" && isValid(output.permissionDecision) ||
        member === "behavior" && name === "onPermissionRequest" && isValid(output.behavior)),
  );
}

/** Returns the decision in a text that is no output, if the hook guards a call or a prompt. */
export function foreignText(name: HookName, text: string): ForeignDecision | undefined {
  return guards.includes(name) ? decisionInText(text) : undefined;
}

/** Returns a text that names the members of an output that are unknown, and that the input of the hook does not have. */
function unknownOutput(name: HookName, output: unknown, input: object): string | undefined {
  return unknownMembers(output, [...Object.keys(schemas[name]), ...Object.keys(input)]);
}

/** Reads the output of a hook. `onInvalid` receives one text per invalid field. */
function readOutput<K extends HookName>(
  name: K,
  foreign: unknown,
  onInvalid: (problem: string) => void,
): Outputs[K] {
  if (!isObject(foreign)) onInvalid(`expected an object, received ${typeof foreign}`);
  const output = readFields<Readonly<Record<string, z.core.$ZodType>>>(
    schemas[name],
    isObject(foreign) ? foreign : {},
    (field, problem) => {
      onInvalid(`${field}: ${problem}`);
    },
  );
  return output as Outputs[K]; // each field was parsed by its own schema
}

// The handlers of the hooks: one per hook, and how it is called.

/** The time in inputs. */
type Time = number | Date;

/** The input of the hook `K`, without the common fields. */
export type Fields<K extends HookName> = Omit<
  Parameters<NonNullable<SessionHooks<Time>[K]>>[0],
  keyof HookInput
>;

/** The output of a hook, and a decision in it that has the form of another system. */
type Answer<K extends HookName> = Outputs[K] & { readonly foreign?: ForeignDecision };

/** The handlers. */
export type Handlers = ReturnType<typeof handlersOf>;

/** Collects the handlers of several registrations: of each hook, the last one. Throws a `TypeError` if a handler is not a function. */
export function handlersOf(
  registered: readonly SessionHooks<never>[],
  { time, cwd: root }: { readonly time: () => Time; readonly cwd: string },
) {
  if (!registered.every(isObject)) {
    throw new TypeError("Cannot use hooks: expected an object with `onPreToolUse` and others");
  }
  for (const name of hookNames) {
    const wrong: unknown = registered.map((hooks) => hooks[name] ?? undefined)
      .find((handler) => handler !== undefined && typeof handler !== "function");
    if (wrong !== undefined) throw new TypeError(`Cannot use ${name}: expected a function, received ${typeof wrong}`);
  }
  const holderOf = (name: HookName) => registered.findLast((hooks) => hooks[name]);

  return {
    /** Registered names that look like hooks but are unknown. */
    unknown: registered.flatMap((hooks) => Object.keys(hooks))
      .filter(isMisspelt),
    /** Whether one of these hooks has a handler. */
    has: (...names: readonly HookName[]): boolean => names.some((name) => holderOf(name)),
    /** Calls the handler of a hook. The output is empty if there is no handler, or if it fails or returns nothing. */
    async ask<K extends HookName>(name: K, ctx: Scope, point: Point, fields: Fields<K>): Promise<Answer<K>> {
      const hooks = holderOf(name);
      if (!hooks) return {};
      const warn = (problem: string, error?: unknown) =>
        warnFailed(ctx, { middleware: "copilot_hooks", point, message: `${name} ${problem}`, error });
      const onFailed = (error: unknown) => warn("failed.", error);
      try {
        const cwd = workingDirectory(ctx.run, root);
        const common = { sessionId: ctx.run.session, timestamp: time(), cwd, workingDirectory: cwd };
        const input = structuredClone({ ...common, ...fields }); // a copy, so that changes of the hook are lost
        const handler = hooks[name] as HookHandler<typeof input, unknown>; // a handler receives the input of its own hook
        const invocation = { sessionId: outermostRun(ctx.run).session };
        const onProgress = (message: string, temporary = false) =>
          ctx.emit(
            temporary
              ? { type: "data", name: "copilot_hooks.progress", data: { message } }
              : { type: "notice", text: message },
          );
        const output = await handler.call(hooks, input, invocation, { signal: ctx.signal, onFailed, onProgress });
        if (output === undefined || output === null) return {};
        const read = readOutput(name, output, (problem) => warn(`returned an invalid output: ${problem}`));
        const foreign = foreignOutput(name, output);
        const unknown = foreign ? undefined : unknownOutput(name, output, input);
        if (unknown !== undefined) warn(`returned ${unknown}.`);
        if (!foreign) return read;
        warn(`${foreign.type === "deny" ? "denies" : "asks"} in the form of another system: ${foreign.member}.`);
        return { ...read, foreign };
      } catch (error) {
        onFailed(error);
        return {};
      }
    },
  };
}

/** Whether a name looks like that of a hook, and is none: `onPreTooluse`, or `preToolUse` as in settings. */
function isMisspelt(name: string): boolean {
  if (hookNames.some((known) => known === name)) return false;
  const similar = [name.toLowerCase(), `on${name.toLowerCase()}`];
  return /^on[A-Z]/.test(name) || hookNames.some((known) => similar.includes(known.toLowerCase()));
}
