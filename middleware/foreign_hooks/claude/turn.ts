/**
 * The `turn` and `model` points: texts that wait for the next request, PostToolBatch, MessageDisplay and PostModelSwitch.
 *
 * @module
 */
import type { EffortLevel } from "./events.ts";
import type { Hooks } from "./hooks.ts";
import { contextOf, lastOf } from "./outputs.ts";
import { finishBatch } from "./tool.ts";
import {
  callsOf,
  type Emit,
  type Event,
  type Middleware,
  type ModelContext,
  type ModelResponse,
  type Run,
  type TurnContext,
  type UserMessage,
} from "../../../mod.ts";

// `MessageDisplay`: replaces the text that the person sees, line by line. The transcript and the model keep the original.

type TextDelta = Extract<Event, { type: "text.delta" }>;

/** Shows the text of turns through the hooks. */
function displayOf(hooks: Hooks) {
  const screens = new WeakMap<Run, Screen>();
  return {
    /** Returns the emit function of a turn; undefined without hooks. */
    start(ctx: TurnContext): Emit | undefined {
      if (!hooks.has("MessageDisplay")) return undefined;
      const screen = new Screen(hooks, ctx);
      screens.set(ctx.run, screen);
      return (event) => screen.emit(event);
    },
    /** Shows all text of a response before the response is complete. */
    async during(ctx: ModelContext, next: () => Promise<ModelResponse>): Promise<ModelResponse> {
      try {
        return await next();
      } finally {
        await screens.get(ctx.run)?.finish();
      }
    },
  };
}

/** The text of one turn on its way to the person. */
class Screen {
  readonly #hooks: Hooks;
  readonly #ctx: TurnContext;
  #message: string = crypto.randomUUID();
  #index = 0;
  /** The text of an incomplete line. */
  #pending: { readonly event: TextDelta; readonly text: string } | undefined;
  /** Settles when all text so far is shown. */
  #shown: Promise<void> = Promise.resolve();

  constructor(hooks: Hooks, ctx: TurnContext) {
    this.#hooks = hooks;
    this.#ctx = ctx;
  }

  emit(event: Event): void {
    if (event.type === "model.reset") {
      this.#message = crypto.randomUUID();
      this.#index = 0;
      this.#pending = undefined;
    }
    if (event.type !== "text.delta") return this.#ctx.emit(event);
    const text = (this.#pending?.text ?? "") + event.text;
    const end = text.lastIndexOf("\n") + 1;
    this.#pending = { event, text: text.slice(end) };
    if (end > 0) this.#show(event, text.slice(0, end), false);
  }

  /** Shows the held text, and waits until all text is shown. */
  async finish(): Promise<void> {
    if (this.#pending) this.#show(this.#pending.event, this.#pending.text, true);
    this.#pending = undefined;
    await this.#shown;
  }

  #show(event: TextDelta, delta: string, final: boolean): void {
    const fields = { turn_id: this.#ctx.run.id, message_id: this.#message, index: this.#index++, final, delta };
    this.#shown = this.#shown.then(async () => {
      const answers = await this.#hooks.ask("MessageDisplay", this.#ctx, () => fields);
      const text = lastOf(answers, this.#hooks.dialect, ({ specific }) => specific.displayContent) ?? delta;
      const isCurrent = fields.message_id === this.#message; // a reset takes text back
      if (isCurrent && text !== "") this.#ctx.emit({ ...event, text });
    });
    this.#shown.catch(() => {}); // `finish` reports it
  }
}

// The hooks at `turn` and `model`: deliver waiting texts, and report the batch and another model.

/** Creates the hooks at `turn` and `model`. */
export function turnHooks(hooks: Hooks): Pick<Middleware, "turn" | "model"> {
  const { memory } = hooks;
  const display = displayOf(hooks);

  async function reportSwitch(ctx: ModelContext, response: ModelResponse): Promise<void> {
    const from_model = ctx.request.model.id;
    if (response.model === from_model || response.attempts === 0) return;
    const { input, output, cached = 0 } = response.usage;
    const answers = await hooks.ask("PostModelSwitch", ctx, () => ({
      from_model,
      to_model: response.model,
      requested_model: null,
      source: "auto",
      context_tokens: input + output,
      prompt_cache_warm: cached > 0,
      cache_ttl: "5m",
      estimated_cache_write_usd: 0,
      pricing: "default",
    }));
    hooks.addLater(ctx, contextOf(answers));
  }

  function noteResponse(ctx: ModelContext, { finish, usage: { input, output } }: ModelResponse): void {
    if (!hooks.dialect.additions) return;
    memory.cut.set(ctx, finish === "length");
    if (ctx.run.parent || !hooks.has("SessionStart")) return;
    memory.last.set(ctx, { session: ctx.run.session, at: ctx.run.now(), tokens: input + output });
  }

  return {
    async turn(ctx, next) {
      const texts = ctx.resumed ? [] : memory.later(ctx).get(ctx);
      if (texts.length > 0) memory.later(ctx).set(ctx, []);
      const emit = display.start(ctx);
      const result = await next({
        ...(texts.length > 0 && { transcript: [...ctx.transcript, messageOf(texts)] }),
        ...(emit && { emit }),
      });
      if (hooks.has("PostToolBatch")) await finishBatch(hooks, ctx, result);
      return result;
    },
    async model(ctx, next) {
      if (ctx.purpose === "summary") return await next();
      if (hooks.dialect.additions) memory.effort.set(ctx, levelOf(ctx));
      const response = await display.during(ctx, next);
      noteResponse(ctx, response);
      if (hooks.has("PreToolUse", "PostToolBatch")) {
        memory.batch.set(ctx, { ids: callsOf(response).map(({ id }) => id), calls: {}, asked: false });
      }
      await reportSwitch(ctx, response);
      return response;
    },
  };
}

/** Returns the level of an effort. Those below the lowest level of the home system are that level, and none is no level. */
function levelOf({ request: { options: { effort } } }: ModelContext): EffortLevel | "" {
  if (effort === undefined || effort === "none") return "";
  return effort === "minimal" ? "low" : effort;
}

/** Returns texts for the model as a message that the transcript keeps. */
function messageOf(texts: readonly string[]): UserMessage {
  return { role: "user", from: "turn", parts: texts.map((text) => ({ type: "text", text })) };
}
