/**
 * `SessionStart`: when a session is opened, and after it was compacted.
 *
 * @module
 */
import type { Scope } from "../../../mod.ts";
import { type Answers, lastOf } from "./answers.ts";
import type { Hooks } from "./hooks.ts";
import type { SessionStartInput } from "./input.ts";

/** Asks the hooks of `SessionStart`, and does what they say but for their context. */
export async function start(hooks: Hooks, ctx: Scope, source: SessionStartInput["source"]): Promise<Answers> {
  const { dialect, memory } = hooks;
  const answers = await hooks.ask("SessionStart", ctx, {
    point: source === "compact" ? "compact" : "session",
    of: source,
    told: () => ({ source }),
  });
  const first = lastOf(answers, dialect, ({ specific }) => specific.initialUserMessage);
  if (first) memory.first.set(ctx, first);
  watching(hooks, ctx, answers);
  return answers;
}

/** Watches the files that hooks say from now on. */
export function watching({ dialect, memory }: Hooks, ctx: Scope, answers: Answers): void {
  const paths = lastOf(answers, dialect, ({ specific }) => specific.watchPaths);
  if (paths) memory.watched.set(ctx, paths);
}
