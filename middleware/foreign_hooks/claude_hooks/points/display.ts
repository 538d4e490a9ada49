/**
 * `MessageDisplay`: replaces the text that the person sees, line by line. The transcript and the model keep the original.
 *
 * @module
 */
import type { Emit, Event, ModelContext, ModelResponse, Run, TurnContext } from "../../../../mod.ts";
import { lastOf } from "../ask/answers.ts";
import type { Hooks } from "../ask/hooks.ts";

type TextDelta = Extract<Event, { type: "text.delta" }>;

/** Shows the text of turns through the hooks. */
export function displayOf(hooks: Hooks) {
  const screens = new WeakMap<Run, Screen>();
  return {
    /** Returns the emit function of a turn; undefined without hooks. */
    begin(ctx: TurnContext): Emit | undefined {
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
  #held: { readonly event: TextDelta; readonly text: string } | undefined;
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
      this.#held = undefined;
    }
    if (event.type !== "text.delta") return this.#ctx.emit(event);
    const text = (this.#held?.text ?? "") + event.text;
    const end = text.lastIndexOf("\n") + 1;
    this.#held = { event, text: text.slice(end) };
    if (end > 0) this.#show(event, text.slice(0, end), false);
  }

  /** Shows the held text, and waits until all text is shown. */
  async finish(): Promise<void> {
    if (this.#held) this.#show(this.#held.event, this.#held.text, true);
    this.#held = undefined;
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
