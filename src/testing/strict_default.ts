/**
 * Turns on strict mode for the agents that this process creates from now on.
 *
 * @module
 */
import { strictKey } from "../core/strict.ts";

Reflect.set(globalThis, strictKey, true);
