/**
 * Sessions, logs and texts by key in Upstash Redis, by its REST API: for platforms that open no other connections.
 *
 * @module
 */
export type { RedisOptions } from "../redis_scripts/script.ts";
export { type UpstashClient, upstashKeyValue, upstashLog, type UpstashLogOptions, upstashStore } from "./upstash.ts";
