/**
 * The empty conversation: the agent, its model, its tools, and prompts to begin with.
 *
 * @module
 */
import type { PageData } from "../../page_data.ts";

/** The properties of the empty conversation. */
interface EmptyProps {
  readonly data: PageData;
  readonly submit: (prompt: string) => void;
}

/** Introduces the agent. */
export function Empty({ data: { agent, model, tools, prompts }, submit }: EmptyProps) {
  return (
    <div id="empty">
      <h2>{agent}</h2>
      <dl>
        <dt>Model</dt>
        <dd class="code">{model ?? "picked for each request"}</dd>
        <dt>Tools</dt>
        <dd>
          {tools.length === 0 && "none"}
          <ul class="tools">
            {tools.map((tool) => <li key={tool.name} class="code" title={tool.description}>{tool.name}</li>)}
          </ul>
        </dd>
      </dl>
      {prompts.length > 0 && <h3>Try</h3>}
      <ul class="prompts">
        {prompts.map((prompt) => (
          <li key={prompt}>
            <button type="button" onClick={() => submit(prompt)}>{prompt}</button>
          </li>
        ))}
      </ul>
    </div>
  );
}
