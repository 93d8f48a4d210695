// A question that is spoken: recorded here and heard by the server where it can, else heard by the browser itself.

import { keyHeaders } from "./key";

/** What goes on while somebody speaks. `stop` ends it: the text comes after. */
export interface Dictation {
  stop: () => void;
}

export interface Heard {
  onText: (text: string) => void;
  onProblem: (problem: "refused" | "missing" | "failed") => void;
  onEnd: () => void;
}

interface Recognition {
  lang: string;
  start: () => void;
  stop: () => void;
  onresult: (event: { results: ArrayLike<ArrayLike<{ transcript: string }>> }) => void;
  onerror: (event: { error: string }) => void;
  onend: () => void;
}

type Recognising = { SpeechRecognition?: new () => Recognition; webkitSpeechRecognition?: new () => Recognition };

function recogniser(): (new () => Recognition) | undefined {
  const known = window as unknown as Recognising;
  return known.SpeechRecognition ?? known.webkitSpeechRecognition;
}

/** Whether the browser lets a page listen at all: over TLS, or on this machine. */
export function canDictate(): boolean {
  return window.isSecureContext && (("MediaRecorder" in window && Boolean(navigator.mediaDevices)) || recogniser() !== undefined);
}

/** Begins to listen in `language`. The browser asks the user first. */
export async function dictate(language: string, heard: Heard): Promise<Dictation> {
  const socket = await opened();
  if (socket) return recorded(socket, language, heard);
  const Recogniser = recogniser();
  if (!Recogniser) {
    heard.onProblem("missing");
    heard.onEnd();
    return { stop: () => {} };
  }
  const recognition = new Recogniser();
  recognition.lang = language;
  recognition.onresult = ({ results }) => heard.onText(Array.from(results, (each) => each[0]?.transcript ?? "").join(" "));
  recognition.onerror = ({ error }) => heard.onProblem(error === "not-allowed" ? "refused" : "failed");
  recognition.onend = heard.onEnd;
  recognition.start();
  return { stop: () => recognition.stop() };
}

/** A conversation with a server that hears; null where it hears nothing, or cannot be reached. */
function opened(): Promise<WebSocket | null> {
  const key = keyHeaders().Authorization?.replace("Bearer ", "");
  const address = `${location.origin.replace(/^http/, "ws")}/ws/voice-chat`;
  const socket = new WebSocket(address, key ? ["groundwork", `openai-insecure-api-key.${key}`] : []);
  return new Promise((resolve) => {
    socket.onerror = socket.onclose = () => resolve(null);
    socket.onmessage = ({ data }) => {
      const hears = JSON.parse(data).data.audio?.input === true;
      if (!hears) socket.close();
      resolve(hears && "MediaRecorder" in window ? socket : null);
    };
  });
}

async function recorded(socket: WebSocket, language: string, heard: Heard): Promise<Dictation> {
  const end = () => {
    socket.onclose = null;
    socket.close();
    heard.onEnd();
  };
  let stream: MediaStream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch {
    heard.onProblem("refused");
    end();
    return { stop: () => {} };
  }
  const recorder = new MediaRecorder(stream);
  socket.send(JSON.stringify({ type: "audio", input: { format: "opus" }, answers: false, asks: { language } }));
  socket.onclose = () => {
    heard.onProblem("failed");
    heard.onEnd();
  };
  socket.onmessage = ({ data }) => {
    const { event, data: told } = JSON.parse(data);
    if (event === "transcript") heard.onText(told.text);
    if (event === "error") heard.onProblem("failed");
    if (event === "transcript" || event === "error") end();
  };
  recorder.ondataavailable = async ({ data }) => {
    if (socket.readyState !== WebSocket.OPEN) return;
    socket.send(await data.arrayBuffer());
    socket.send(JSON.stringify({ type: "commit" }));
  };
  recorder.onstop = () => {
    for (const track of stream.getTracks()) track.stop();
  };
  recorder.start();
  return { stop: () => recorder.stop() };
}
