/**
 * Turns of the event loop, on the timers of the platform. A test that fakes timers does not delay them, because the originals are found when this module loads.
 *
 * @module
 */

/** Calls a function in the next turn of the event loop, and returns a function that cancels the call. */
type Turn = (run: () => void) => () => void;

/** Waits for a timer, which lasts a millisecond. Use it for work that should gather meanwhile, such as writes to a disk. */
export const turn: Turn = /* @__PURE__ */ starter(timer("setTimeout"), timer("clearTimeout"));

/** Does not wait for a timer where the platform has `setImmediate()`, which costs a tenth of a timer. */
export const soon: Turn = "setImmediate" in globalThis
  ? /* @__PURE__ */ starter(timer("setImmediate"), timer("clearImmediate"))
  : turn;

function starter<T>(start: () => (run: () => void) => T, clear: () => (started: T) => void): Turn {
  return (run) => {
    const started = start()(run);
    return () => clear()(started);
  };
}

/** Returns a function that returns a timer of the platform. Deno loads its timers when one is read first, so it is read only when it is called. */
function timer<K extends keyof typeof globalThis>(name: K): () => typeof globalThis[K] {
  const own = Object.getOwnPropertyDescriptor(globalThis, name);
  if (own?.get) return own.get.bind(globalThis);
  const found = globalThis[name];
  return () => found;
}
