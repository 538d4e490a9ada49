/**
 * The text of an event on the screen.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import { textOf as textOfMessage } from "../../protocol/message.ts";
import { visible } from "../terminal/terminal.ts";

/** Returns the text to write for an event. */
export function textOf(event: Event): string {
  switch (event.type) {
    case "text.delta":
      return visible(event.text);
    case "call.ready":
      return callText(event.call);
    case "provider_tool.started":
      return callText(event.content);
    case "provider_tool.finished":
      return event.content.status === "ok" ? "" : `[${visible(event.content.name)}: ${event.content.status}]\n`;
    case "tool.finished":
      return event.result.status === "ok" ? "" : `[${visible(event.result.name)}: ${event.result.status}]\n`;
    case "steering.injected":
      return event.messages.map((message) => `\n[the agent reads: ${visible(textOfMessage(message))}]\n`).join("");
    case "run.finished":
      return event.status === "done"
        ? "\n"
        : `\n[${event.status}${event.reason ? `: ${visible(event.reason)}` : ""}]\n`;
    case "run.failed":
      return `\n[failed: ${visible(event.message)} (${visible(event.error)})]\n`;
    case "run.aborted":
      return `\n[stopped: ${visible(event.reason)}]\n`;
    default:
      return "";
  }
}

function callText({ name, input }: { readonly name: string; readonly input: unknown }): string {
  return `\n[${visible(name)} ${visible(JSON.stringify(input) ?? "")}]\n`;
}
