/**
 * Around a prompt: `UserPromptExpansion` where it is a command, and `UserPromptSubmit`.
 *
 * @module
 */
import { type Answer, cancelled, type Middleware, type PromptContext, textOf, type UserMessage } from "../../../mod.ts";
import { type Answers, blockOf, contextOf, lines } from "./answers.ts";
import type { Hooks } from "./hooks.ts";
import type { HookEvent } from "./input.ts";

/** The hooks of a middleware at `prompt`, which none of an agent beneath has. */
export function prompt(hooks: Hooks): Pick<Middleware, "prompt"> {
  const { dialect, memory } = hooks;

  /** Why the prompt is not taken, where hooks say so. */
  function refusal(event: HookEvent, answers: Answers): Answer | undefined {
    const stopping = answers.filter((answer) => answer.continue === false);
    if (stopping.length > 0 && dialect.ending.includes(event)) {
      return cancelled(lines(stopping.map(({ stopReason }) => stopReason)) ?? "Stopped by a hook.");
    }
    const blocked = blockOf(answers);
    return blocked === undefined ? undefined : cancelled(blocked);
  }

  async function askAll(ctx: PromptContext): Promise<Answer | readonly string[]> {
    const text = textOf(ctx.prompt);
    const context: string[] = [];
    const [, command_name, command_args = ""] = text.match(/^\/([\w:-]+)(?:\s+(.*))?$/s) ?? [];
    if (command_name !== undefined) {
      const answers = await hooks.ask("UserPromptExpansion", ctx, {
        point: "prompt",
        of: command_name,
        told: () => ({ expansion_type: "slash_command" as const, command_name, command_args, prompt: text }),
      });
      const refused = refusal("UserPromptExpansion", answers);
      if (refused) return refused;
      context.push(...contextOf(answers));
    }
    const answers = await hooks.ask("UserPromptSubmit", ctx, {
      point: "prompt",
      told: () => ({ prompt: text, source: "sdk" as const, ...imagesOf(ctx.prompt) }),
    });
    return refusal("UserPromptSubmit", answers) ?? [...context, ...contextOf(answers)];
  }

  return {
    async prompt(ctx, next) {
      if (ctx.resumed || ctx.run.parent) return await next();
      const asked = await askAll(ctx);
      if ("status" in asked) return asked;
      const said = [...memory.later(ctx).get(ctx), ...asked];
      memory.later(ctx).set(ctx, []);
      const first = memory.first.get(ctx);
      memory.first.set(ctx, ""); // other hooks may stand beneath, which would say it again
      return await next({
        context: [...ctx.context, ...said],
        ...(first && { prompt: after(first, ctx.prompt) }),
      });
    },
  };
}

/** A prompt that says something else first. */
function after(first: string, prompt: UserMessage): UserMessage {
  return { ...prompt, parts: [{ type: "text", text: `${first}\n\n` }, ...prompt.parts] };
}

function imagesOf({ parts }: UserMessage) {
  const urls = parts.flatMap((part) => part.type === "media" && part.url !== undefined ? [part.url] : []);
  return urls.length > 0 && { image_urls: urls };
}
