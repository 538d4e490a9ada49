/**
 * Timers for turns of the event loop.
 *
 * @module
 */

/** The timers of the platform, taken before a test can fake them, so that faked time does not delay events. */
export const { setTimeout: turn, clearTimeout: clearTurn } = globalThis;
