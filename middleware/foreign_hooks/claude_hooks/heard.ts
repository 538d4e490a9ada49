/**
 * What is heard of a run while it goes on: `CwdChanged`, `FileChanged`, `InstructionsLoaded` and `Notification`. Nobody waits for these hooks.
 *
 * @module
 */
import type { Event, SessionContext } from "../../../mod.ts";
import { contextOf } from "./answers.ts";
import { within } from "./base.ts";
import type { Hooks } from "./hooks.ts";
import { watching } from "./start.ts";

/** Hands an event on, and tells the hooks of it that want to know; nothing where none does. */
export function hearing(hooks: Hooks): ((ctx: SessionContext, event: Event) => void) | undefined {
  const { memory, cwd } = hooks;
  if (!hooks.has("CwdChanged", "FileChanged", "InstructionsLoaded", "Notification")) return undefined;

  /** Whether hooks watch a file. */
  function isWatched(ctx: SessionContext, path: string): boolean {
    const watched = memory.watched.get(ctx);
    return !watched || watched.some((each) => path === each || path.startsWith(`${each.replace(/\/$/, "")}/`));
  }

  function tell(ctx: SessionContext, event: Event): void {
    switch (event.type) {
      case "cwd.changed": {
        const told = { old_cwd: within(cwd, event.from), new_cwd: within(cwd, event.to) };
        return hooks.notify("CwdChanged", ctx, { point: "tool", told: () => told }, (answers) => {
          watching(hooks, ctx, answers);
        });
      }
      case "file.changed": {
        const { path, change } = event;
        const told = { file_path: within(cwd, path), event: change };
        if (!isWatched(ctx, told.file_path)) return;
        const of = path.slice(path.lastIndexOf("/") + 1);
        return hooks.notify("FileChanged", ctx, { point: "tool", of, told: () => told }, (answers) => {
          watching(hooks, ctx, answers);
        });
      }
      case "instructions.loaded": {
        const load_reason = event.reason === "session" ? "session_start" : "nested_traversal";
        const isFile = !/^https?:/.test(event.path);
        const told = {
          file_path: isFile ? within(cwd, event.path) : event.path,
          memory_type: isFile ? "Project" : "Managed",
          load_reason,
        } as const;
        return hooks.notify("InstructionsLoaded", ctx, { point: "session", of: load_reason, told: () => told });
      }
      case "approval.asked": {
        const notification_type = "permission_prompt";
        const message = `Your permission is needed to use ${event.tool}`;
        const told = { notification_type, title: "Permission needed", message } as const;
        return hooks.notify(
          "Notification",
          ctx,
          { point: "approval", of: notification_type, told: () => told },
          (answers) => {
            hooks.tellLater(ctx, contextOf(answers));
          },
        );
      }
    }
  }

  return (ctx, event) => {
    ctx.emit(event);
    tell(ctx, event);
  };
}
