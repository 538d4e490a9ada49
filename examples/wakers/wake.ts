/**
 * The part that the wakers of this folder share. A waker continues runs whose process died. It does not replay them: the store knows how far a run is.
 *
 * @module
 */
import type { Middleware, ServedApp, Store } from "@jizai/jizai";
import type { Customer } from "../shop/shop.ts";

/** A session that a waker looks after while it has a run. */
export interface Watched extends Customer {
  readonly session: string;
}

/** Schedules a waker before each run begins or continues. */
export function watching(schedule: (watched: Watched) => Promise<unknown>): Middleware<Customer> {
  return {
    name: "watching",
    async session({ session, vars: { user } }, next) {
      await schedule({ session, user });
      return await next();
    },
  };
}

/** Continues runs whose process died, to their end or pause, and deletes what is not kept any more. Returns true if the session still has a run that works, so the waker has to look again. */
export async function wake(
  app: Pick<ServedApp, "recover" | "sweep">,
  store: Store,
  { session, user }: Watched,
): Promise<boolean> {
  const { over } = await app.recover();
  await over;
  await app.sweep();
  const { run } = await store.load(session, { owner: user }) ?? {};
  return run !== undefined && run.exit === undefined;
}
