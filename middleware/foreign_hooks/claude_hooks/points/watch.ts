/**
 * Events of a run that hooks observe in the background: CwdChanged, FileChanged, InstructionsLoaded and Notification.
 *
 * @module
 */
import type { Event, Scope, SessionContext } from "../../../../mod.ts";
import { absolutePath } from "../../kit/run.ts";
import { type Answers, contextOf, lastOf } from "../ask/answers.ts";
import type { Hooks } from "../ask/hooks.ts";

/** Replaces the watched files by the `watchPaths` of the answers. Without `watchPaths`, they stay. */
export function watchPaths({ dialect, memory }: Hooks, ctx: Scope, answers: Answers): void {
  const paths = lastOf(answers, dialect, ({ specific }) => specific.watchPaths);
  if (paths) memory.watched.set(ctx, paths);
}

/** Returns a function that passes an event on and runs the hooks for it; undefined without such hooks. */
export function watchEvents(hooks: Hooks): ((ctx: SessionContext, event: Event) => void) | undefined {
  if (!hooks.has("CwdChanged", "FileChanged", "InstructionsLoaded", "Notification")) return undefined;
  const { cwd } = hooks;
  const named = namesIn(hooks);

  function isWatched(ctx: SessionContext, path: string): boolean {
    const paths = hooks.memory.watched.get(ctx);
    if (!paths && !hooks.dialect.watchesNamed) return true;
    const isNamed = hooks.dialect.watchesNamed && named.has(path.slice(path.lastIndexOf("/") + 1));
    return isNamed || (paths ?? []).some((each) => path === each || path.startsWith(`${each.replace(/\/$/, "")}/`));
  }

  function notify(ctx: SessionContext, event: Event): void {
    const onPaths = (answers: Answers) => watchPaths(hooks, ctx, answers);
    switch (event.type) {
      case "cwd.changed": {
        const fields = { old_cwd: absolutePath(cwd, event.from), new_cwd: absolutePath(cwd, event.to) };
        return hooks.notify("CwdChanged", ctx, () => fields, onPaths);
      }
      case "file.changed": {
        const fields = { file_path: absolutePath(cwd, event.path), event: event.change };
        return isWatched(ctx, fields.file_path) ? hooks.notify("FileChanged", ctx, () => fields, onPaths) : undefined;
      }
      case "instructions.loaded": {
        const isFile = !/^https?:/.test(event.path);
        const fields = {
          file_path: isFile ? absolutePath(cwd, event.path) : event.path,
          memory_type: isFile ? "Project" : "Managed",
          load_reason: event.reason === "session" ? "session_start" : "nested_traversal",
        } as const;
        return hooks.notify("InstructionsLoaded", ctx, () => fields);
      }
      case "approval.asked": {
        const message = `Your permission is needed to use ${event.tool}`;
        const fields = { notification_type: "permission_prompt", title: "Permission needed", message } as const;
        return hooks.notify("Notification", ctx, () => fields, (answers) => hooks.addLater(ctx, contextOf(answers)));
      }
    }
  }

  return (ctx, event) => {
    ctx.emit(event);
    notify(ctx, event);
  };
}

/** Returns the file names that matchers of FileChanged contain. */
function namesIn({ definitions }: Hooks): ReadonlySet<string> {
  return new Set((definitions.get("FileChanged") ?? []).flatMap(({ matcher }) => matcher.split("|")));
}
