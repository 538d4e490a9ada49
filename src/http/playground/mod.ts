/**
 * The playground: a page to talk with an agent, and to see what it does.
 *
 * @module
 */
export * from "./playground.ts";
