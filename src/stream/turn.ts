/**
 * Turns of the event loop.
 *
 * @module
 */

/** The event loop's own clock: tests that set theirs do not hold events back. */
export const { setTimeout: turn, clearTimeout: clearTurn } = globalThis;
