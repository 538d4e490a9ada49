/**
 * A page as one writes it with `useChat`. It asks for its messages when it is loaded, and for the rest when it is online again.
 *
 * @module
 */
/** @jsxRuntime automatic */
/** @jsxImportSource npm:react@19.3.1 */
import { useChat } from "npm:@ai-sdk/react@4.0.177";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "npm:ai@7.0.173";
import { StrictMode, useEffect } from "npm:react@19.3.1";
import { createRoot } from "npm:react-dom@19.3.1/client";

const transport = new DefaultChatTransport({ api: "/chat" });
const response = await fetch("/chat/tab");
const kept = response.ok ? await response.json() : [];

function Page() {
  const { messages, status, sendMessage, addToolApprovalResponse, resumeStream } = useChat({
    id: "tab",
    messages: kept,
    transport,
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  useEffect(() => {
    const goOn = () => void resumeStream();
    addEventListener("online", goOn);
    return () => removeEventListener("online", goOn);
  }, [resumeStream]);

  return (
    <form action={(form) => void sendMessage({ text: form.get("message") })}>
      <ol>
        {messages.flatMap(({ id, role, parts }) =>
          parts.map((part, index) => (
            <Part key={`${id} ${index}`} role={role} part={part} answer={addToolApprovalResponse} />
          ))
        )}
      </ol>
      <output>{status}</output>
      <input name="message" aria-label="Message" />
    </form>
  );
}

function Part({ role, part, answer }) {
  if (part.type === "text") return <li>{`${role}: ${part.text}`}</li>;
  if (!part.type.startsWith("tool-")) return null;
  const { type, state, input, output, approval } = part;
  return (
    <li>
      {[type, state, JSON.stringify(input), output].filter(Boolean).join(" ")}
      {state === "approval-requested" && (
        <>
          <button type="button" onClick={() => answer({ id: approval.id, approved: true })}>Approve</button>
          <button type="button" onClick={() => answer({ id: approval.id, approved: false, reason: "Too late" })}>
            Deny
          </button>
        </>
      )}
    </li>
  );
}

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
