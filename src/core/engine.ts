/**
 * The parts of the engine that a server, a store, or a program that runs hooks without an agent needs.
 *
 * @module
 */
export { approvalLaw } from "./approval.ts";
export { lawOf, merged } from "./law.ts";
export { compose, type Law } from "./onion.ts";
export { nameOf } from "./onions.ts";
export { resultBy } from "./prepare.ts";
