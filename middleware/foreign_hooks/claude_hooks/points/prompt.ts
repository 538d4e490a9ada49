/**
 * The points `prompt` and `input`: UserPromptExpansion for a prompt that is a command, and UserPromptSubmit, for prompts and for steering.
 *
 * @module
 */
import {
  type Answer,
  cancelled,
  type Middleware,
  refused,
  type Scope,
  textOf,
  type UserMessage,
} from "../../../../mod.ts";
import { joinLines } from "../../kit/fields.ts";
import { type Answers, blockOf, contextOf } from "../ask/answers.ts";
import type { Hooks } from "../ask/hooks.ts";
import type { HookEvent } from "../config/input.ts";

/** Creates the hook at `prompt`, and the hook at `input` for messages to a run while it works. They do not run for the prompts of subagents. */
export function promptHooks(hooks: Hooks): Pick<Middleware, "prompt" | "input"> {
  const { dialect, memory } = hooks;

  /** Returns the refusal of the prompt, if a hook refuses it. */
  function refusalOf(event: HookEvent, answers: Answers): Answer | undefined {
    const stopping = answers.filter((answer) => answer.continue === false);
    if (stopping.length > 0 && dialect.ending.includes(event)) {
      return cancelled(joinLines(stopping.map(({ stopReason }) => stopReason)) ?? "Stopped by a hook.");
    }
    const blocked = blockOf(answers);
    return blocked === undefined ? undefined : cancelled(blocked);
  }

  async function askExpansion(ctx: Scope, prompt: string): Promise<Answers> {
    const [, command_name, command_args = ""] = prompt.match(/^\/([\w:-]+)(?:\s+(.*))?$/s) ?? [];
    if (command_name === undefined) return [];
    const fields = { expansion_type: "slash_command", command_name, command_args, prompt } as const;
    return await hooks.ask("UserPromptExpansion", ctx, () => fields);
  }

  /** Returns a refusal, or the texts for the model. */
  async function askAll(ctx: Scope, message: UserMessage): Promise<Answer | readonly string[]> {
    const prompt = textOf(message);
    const expanded = await askExpansion(ctx, prompt);
    const refused = refusalOf("UserPromptExpansion", expanded);
    if (refused) return refused;
    const fields = () => ({ prompt, source: "sdk" as const, ...imagesOf(message) });
    const submitted = await hooks.ask("UserPromptSubmit", ctx, fields);
    return refusalOf("UserPromptSubmit", submitted) ?? [...contextOf(expanded), ...contextOf(submitted)];
  }

  /** Asks about a message to a run while it works. The texts for the model are delivered with the message. */
  const steering: Pick<Middleware, "input"> = {
    async input(ctx, next) {
      const [message] = ctx.messages;
      if (ctx.source !== "steering" || message?.role !== "user") return await next();
      const answer = await askAll(ctx, message);
      if ("status" in answer) return refused(answer.reason ?? "");
      return await next({ context: [...ctx.context, ...answer] });
    },
  };

  return {
    ...(hooks.has("UserPromptSubmit", "UserPromptExpansion") && steering),
    async prompt(ctx, next) {
      if (ctx.resumed || ctx.run.parent) return await next();
      const answer = await askAll(ctx, ctx.prompt);
      if ("status" in answer) return answer;
      const context = [...ctx.context, ...memory.later(ctx).get(ctx), ...answer];
      memory.later(ctx).set(ctx, []);
      const first = memory.firstMessage.get(ctx);
      memory.firstMessage.set(ctx, ""); // otherwise an inner middleware of this kind would add it again
      return await next({ context, ...(first && { prompt: prefixed(first, ctx.prompt) }) });
    },
  };
}

function prefixed(first: string, prompt: UserMessage): UserMessage {
  return { ...prompt, parts: [{ type: "text", text: `${first}\n\n` }, ...prompt.parts] };
}

function imagesOf({ parts }: UserMessage) {
  const urls = parts.flatMap((part) => part.type === "media" && part.url !== undefined ? [part.url] : []);
  return urls.length > 0 && { image_urls: urls };
}
