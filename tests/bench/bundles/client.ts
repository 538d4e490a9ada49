/** All of the client: what a page would load. */
export * from "@jizai/jizai/client";
