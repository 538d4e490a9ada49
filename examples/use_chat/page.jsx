/**
 * A page with `useChat`. It loads its messages when it is opened, and resumes its stream when it is online again. Its Stop button stops the run.
 * `package.json` beside it has its packages, `npm install` installs them: Vite, esbuild and `deno bundle` build it.
 *
 * @module
 */
/** @jsxRuntime automatic */
/** @jsxImportSource react */
import { useChat } from "@ai-sdk/react";
import { newestMessageOnly } from "@jizai/jizai/client";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { StrictMode, useEffect } from "react";
import { createRoot } from "react-dom/client";

/** The two functions of src/wire/README.md. */
async function messagesOf(id) {
  const response = await fetch(`/chat/${id}`);
  return response.ok ? await response.json() : [];
}
async function stop(id) {
  await fetch(`/chat/${id}/stream`, { method: "DELETE" });
}

function Page({ stored }) {
  const { messages, status, sendMessage, addToolApprovalResponse, resumeStream, regenerate } = useChat({
    id: "tab",
    messages: stored,
    transport: new DefaultChatTransport({ api: "/chat", prepareSendMessagesRequest: newestMessageOnly }),
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  useEffect(() => {
    const resume = () => void resumeStream();
    addEventListener("online", resume);
    return () => removeEventListener("online", resume);
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
      <button type="button" onClick={() => stop("tab")}>Stop</button>
      <button type="button" onClick={() => regenerate()}>Regenerate</button>
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

messagesOf("tab").then((stored) =>
  createRoot(document.getElementById("root")).render(
    <StrictMode>
      <Page stored={stored} />
    </StrictMode>,
  )
);
