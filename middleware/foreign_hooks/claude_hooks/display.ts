/**
 * `MessageDisplay`: what is shown of an answer, line by line. What is kept, and what the model sees, stays as it is.
 *
 * @module
 */
import type { Emit, Event, ModelContext, ModelResponse, Run, TurnContext } from "../../../mod.ts";
import { lastOf } from "./answers.ts";
import type { Hooks } from "./hooks.ts";

type TextDelta = Extract<Event, { type: "text.delta" }>;

/** Shows what hooks make of the text of a turn. */
export function displaying(hooks: Hooks) {
  const screens = new WeakMap<Run, Screen>();
  return {
    /** What a turn's events pass through; nothing where no hook wants to see its text. */
    begin(ctx: TurnContext): Emit | undefined {
      if (!hooks.has("MessageDisplay")) return undefined;
      const screen = new Screen(hooks, ctx);
      screens.set(ctx.run, screen);
      return (event) => screen.pass(event);
    },
    /** Has all of a response's text shown before it is complete. */
    async display(ctx: ModelContext, next: () => Promise<ModelResponse>): Promise<ModelResponse> {
      try {
        return await next();
      } finally {
        await screens.get(ctx.run)?.finish();
      }
    },
  };
}

/** The text of one turn on its way to whoever watches. */
class Screen {
  readonly #hooks: Hooks;
  readonly #ctx: TurnContext;
  #message: string = crypto.randomUUID();
  #index = 0;
  /** Text whose line goes on. */
  #held: { readonly event: TextDelta; readonly text: string } | undefined;
  /** Settles when all so far is shown. */
  #shown: Promise<void> = Promise.resolve();

  constructor(hooks: Hooks, ctx: TurnContext) {
    this.#hooks = hooks;
    this.#ctx = ctx;
  }

  pass(event: Event): void {
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

  /** Shows what is held, and waits until everything is shown. */
  async finish(): Promise<void> {
    if (this.#held) this.#show(this.#held.event, this.#held.text, true);
    this.#held = undefined;
    await this.#shown;
  }

  #show(event: TextDelta, delta: string, final: boolean): void {
    const message = this.#message;
    const index = this.#index++;
    this.#shown = this.#shown.then(async () => {
      const text = await this.#asked({ delta, final, index, message_id: message });
      if (message === this.#message && text !== "") this.#ctx.emit({ ...event, text }); // else it was taken back
    });
    this.#shown.catch(() => {}); // whoever finishes is told
  }

  async #asked(told: { delta: string; final: boolean; index: number; message_id: string }): Promise<string> {
    const { run } = this.#ctx;
    const answers = await this.#hooks.ask("MessageDisplay", this.#ctx, {
      point: "model",
      told: () => ({ ...told, turn_id: run.id }),
    });
    return lastOf(answers, this.#hooks.dialect, ({ specific }) => specific.displayContent) ?? told.delta;
  }
}
