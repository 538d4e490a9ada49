/** The whole client, as a page loads it. */
export * from "@jizai/jizai/client";
