/**
 * The text field.
 *
 * @module
 */
import { useEffect, useRef } from "hono/jsx/dom";

/** The properties of the text field. */
interface ComposerProps {
  readonly status: string;
  /** A text to put back. */
  readonly refused: string;
  readonly submit: (text: string) => void;
  readonly stop: () => void;
}

/** The text field. Enter sends, Shift and Enter add a line, and Escape stops the run. */
export function Composer({ status, refused, submit, stop }: ComposerProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  useEffect(() => {
    if (field.current) field.current.value ||= refused;
  }, [refused]);
  const isRunning = status === "running";
  return (
    <form id="composer" onSubmit={send}>
      <label>
        <span class="hidden">Message</span>
        <textarea
          id="words"
          ref={field}
          rows={1}
          placeholder={isRunning ? "Send a message to the run" : "Send a message"}
          aria-describedby="keys"
          onKeyDown={onKey}
        />
      </label>
      <button id="send" type="submit" class="primary">Send</button>
      <p id="keys" class="hint">
        <kbd>Enter</kbd> sends, <kbd>Shift Enter</kbd> adds a line, <kbd>Esc</kbd> stops the run
      </p>
    </form>
  );

  function send(event: Event): void {
    event.preventDefault();
    const text = field.current?.value.trim();
    if (!field.current || !text) return;
    field.current.value = "";
    submit(text);
  }

  function onKey(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) send(event);
    if (event.key === "Escape" && isRunning) stop();
  }
}
