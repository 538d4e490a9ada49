/**
 * Hand-over: a process that shuts down gives its runs to other processes.
 *
 * @module
 */
import { promiseTry } from "../../stream/promise_try.ts";
import type { Ready } from "./open.ts";

/**
 * Hands a run over. At the next safe place, or after `grace` milliseconds, its state is saved without its lease, and this process does nothing more for it.
 * A run whose state ends with the process is aborted instead.
 */
export function handOver(ready: Ready, grace: number): void {
  const { engine, writer } = ready;
  const { control } = engine;
  if (!writer.durable) return control.abort("shutdown");
  const leave = () => {
    const { loop, exit, events } = engine;
    const ends = control.aborted || events.closed || loop.detached || exit.current !== undefined;
    if (!ends) release(ready);
  };
  control.leaveAfter(grace, leave);
  engine.loop.stopAtSafePlace(leave);
}

/** Saves the state as it is now, and stops the work: no later event, move or save has an effect. If the state cannot be saved, the run counts as lost. */
function release({ engine, writer, stored }: Ready): void {
  const saved = promiseTry(() => writer.release(stored.freeze())); // freeze() throws if a hook has put a value into the state that is not JSON
  engine.events.mute();
  engine.loop.detach();
  engine.control.abort("shutdown", { handOver: true });
  const failed = (error: unknown) => {
    writer.close();
    engine.events.report(error);
  };
  // clients reconnect when their streams close, and then find the run without its lease
  stored.released = saved.catch(failed).then(() => engine.close());
}
