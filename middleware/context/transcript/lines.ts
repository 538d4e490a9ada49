/**
 * The lines of a transcript, in the format of Claude Code.
 *
 * @module
 */
import { type AnswerPart, type CallResult, type ContentPart, type Message, type Run, textOf } from "../../../mod.ts";

/** A line of a file. */
export interface Line {
  readonly type: "user" | "assistant";
  readonly uuid: string;
  readonly parentUuid: string | null;
  readonly sessionId: string;
  readonly timestamp: string;
  readonly isSidechain: boolean;
  readonly isMeta?: boolean;
  readonly message: { readonly role: "user" | "assistant"; readonly content: unknown };
}

/** Returns a line for each message of a run. `last` is the id of the line before them. */
export function linesOf(messages: readonly Message[], run: Run, last: string | null): Line[] {
  let parentUuid = last;
  return messages.map((message) => {
    const uuid = crypto.randomUUID();
    const line = {
      uuid,
      parentUuid,
      sessionId: run.session,
      timestamp: new Date().toISOString(),
      isSidechain: run.parent !== undefined,
      ...contentOf(message),
    };
    parentUuid = uuid;
    return line;
  });
}

function contentOf(message: Message): Pick<Line, "type" | "message" | "isMeta"> {
  switch (message.role) {
    case "user": {
      const isText = message.parts.every(({ type }) => type === "text");
      const content = isText ? textOf(message) : message.parts.map(blockOf);
      return { type: "user", ...(message.from !== undefined && { isMeta: true }), message: { role: "user", content } };
    }
    case "assistant":
      return { type: "assistant", message: { role: "assistant", content: message.parts.map(blockOf) } };
    case "tool":
      return { type: "user", message: { role: "user", content: message.results.map(resultOf) } };
  }
}

function resultOf({ callId: tool_use_id, status, parts }: CallResult): unknown {
  return { type: "tool_result", tool_use_id, content: parts.map(blockOf), ...(status !== "ok" && { is_error: true }) };
}

function blockOf(part: AnswerPart | ContentPart): unknown {
  switch (part.type) {
    case "text":
      return part;
    case "source":
    case "refusal":
    case "logprobs":
      return part;
    case "provider_call":
      return { type: "server_tool_use", id: part.callId, name: part.name, input: part.input };
    case "provider_result":
      return { type: `${part.name}_tool_result`, tool_use_id: part.callId, content: part.output };
    case "reasoning":
      return { type: "thinking", thinking: part.text };
    case "call":
      return { type: "tool_use", id: part.id, name: part.name, input: part.input };
    case "media": {
      const { data, url, mediaType: media_type } = part;
      return {
        type: "image",
        source: data === undefined ? { type: "url", url } : { type: "base64", media_type, data },
      };
    }
  }
}
