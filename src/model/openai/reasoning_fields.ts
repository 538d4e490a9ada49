/** The fields in which servers stream reasoning. The first that has text is used, and its name is noted to send the reasoning back. */
export const reasoningFields = ["reasoning_content", "reasoning"] as const;
