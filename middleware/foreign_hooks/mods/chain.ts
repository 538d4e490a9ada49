/**
 * The chain of an event: its hooks around a core. A hook that fails is skipped, or its last result stands.
 *
 * @module
 */
import { type Dispatch, Frame, Overrun, type Place, settleCore, skipped } from "./frame.ts";
import { copyOf, type Data, freeze } from "./patterns.ts";

/** Dispatches an event, and returns the answer. */
export function dispatch(
  all: Dispatch<Promise<unknown>>,
  e: Data,
  signal: AbortSignal,
): Promise<unknown> {
  return proceed(all, { at: 0, signal, step: {} }, freeze(copyOf(e) as Data)); // a copy of an object
}

/** Runs the links from a place on, and then the core. */
async function proceed(all: Dispatch<Promise<unknown>>, place: Place, e: Data): Promise<unknown> {
  const link = all.links[place.at];
  if (!link) return await runCore(all, place, e);
  const behind = skipped(place, link, all.event, e);
  if (behind) return await proceed(all, behind, e);
  return await new PlainFrame(all, link, place, e).run();
}

async function runCore(all: Dispatch<Promise<unknown>>, place: Place, e: Data): Promise<unknown> {
  const started = Date.now();
  try {
    const value = await all.core(e, place.signal);
    settleCore(all, place, e, { value }, started);
    return value;
  } catch (error) {
    settleCore(all, place, e, { error }, started);
    throw error;
  }
}

/** A hook whose `next()` returns a promise. */
class PlainFrame extends Frame<Promise<unknown>> {
  /** The object that the last `next()` gave to the hook. */
  #open: unknown;
  /** The last `next()`. */
  #last: Promise<unknown> | undefined;

  protected override proceed(place: Place, e: Data): Promise<unknown> {
    return proceed(this.dispatch, place, e);
  }

  protected override open(run: () => Promise<unknown>): Promise<unknown> {
    const result = this.#last = this.#run(run);
    result.catch(() => {}); // the hook that awaits it sees the error; `recover` reports one that does not
    return result;
  }

  async #run(run: () => Promise<unknown>): Promise<unknown> {
    const work = run(); // throws for fields that cannot be passed on, which is a failure of the hook
    try {
      const value = await this.inFlight(work);
      this.resolved = { value };
      return this.#open = copyOf(value);
    } catch (error) {
      this.rejected = { error };
      throw error;
    }
  }

  /** Runs the hook, and returns the result of the chain from here on. */
  async run(): Promise<unknown> {
    try {
      const returned = await this.call(this.link.hook, this.next());
      const answer = this.accepted(returned);
      this.close(returned === this.#open ? "passed" : "returned", answer);
      return answer;
    } catch (error) {
      if (!this.isPassing(error)) return await this.#recover(error);
      this.close("rejected", undefined);
      throw error;
    }
  }

  async #recover(error: unknown): Promise<unknown> {
    const { dispatch: { event, report, isClosed, rules: { refusal } }, link } = this;
    report(link, event, error);
    if (this.isBusy) await this.#last?.catch(() => {}); // it is handled below
    const handler = link.handler();
    if (handler) {
      try {
        const answer = this.accepted(await this.call(handler, this.replayingNext(error, (e) => this.#replay(e)), true));
        this.close("caught", answer);
        return answer;
      } catch (late) {
        if (!this.isPassing(late)) report(link, event, late);
      }
    }
    if (isClosed && refusal) {
      const answer = refusal(`The mod "${link.mod.name}" failed at ${event}.`);
      this.close("returned", answer);
      return answer;
    }
    return await this.#without(error);
  }

  /** Returns the result of `next()`, or runs the links beneath if the hook has not called it. */
  #replay(e: Data): Promise<unknown> {
    if (this.resolved) return Promise.resolve(this.resolved.value);
    if (this.rejected) return Promise.reject(this.rejected.error);
    return this.beneath(e);
  }

  /** Returns the result of the chain without the hook. */
  async #without(error: unknown): Promise<unknown> {
    const wasCalled = this.resolved || this.rejected;
    try {
      const value = await this.#replay(this.e);
      this.close(error instanceof Overrun ? "expired" : wasCalled ? "kept" : "skipped", value);
      return value;
    } catch (thrown) {
      this.close("rejected", undefined);
      throw thrown;
    }
  }
}
