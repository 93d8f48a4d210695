// A spoken question: by the server where it hears, by the browser where it does not.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { canDictate, dictate, type Heard } from "../../src/api/dictation";

class Socket {
  static OPEN = 1;
  static last: Socket;
  static hears = true;
  readyState = 1;
  sent: unknown[] = [];
  onmessage: (event: { data: string }) => void = () => {};
  onclose: (() => void) | null = null;
  constructor(
    readonly address: string,
    readonly protocols: string[],
  ) {
    Socket.last = this;
    queueMicrotask(() => this.tell("ready", { audio: { input: Socket.hears, output: false } }));
  }
  tell(event: string, data: unknown) {
    this.onmessage({ data: JSON.stringify({ event, id: null, data }) });
  }
  send(data: unknown) {
    this.sent.push(data);
  }
  close() {
    this.readyState = 3;
    this.onclose?.();
  }
}

class Recorder {
  ondataavailable: (event: { data: Blob }) => Promise<void> = async () => {};
  onstop = () => {};
  start() {}
  async stop() {
    await this.ondataavailable({ data: new Blob(["sound"]) });
    this.onstop();
  }
}

class Recognition {
  static last: Recognition;
  lang = "";
  onresult: (event: unknown) => void = () => {};
  onend = () => {};
  onerror = () => {};
  start() {
    Recognition.last = this;
  }
  stop() {
    this.onresult({ results: [[{ transcript: "How long?" }]] });
    this.onend();
  }
}

const track = { stop: vi.fn() };
const heard = { onText: vi.fn(), onProblem: vi.fn(), onEnd: vi.fn() } satisfies Heard;

beforeEach(() => {
  vi.clearAllMocks();
  Socket.hears = true;
  vi.stubGlobal("window", { isSecureContext: true, MediaRecorder: Recorder, SpeechRecognition: Recognition });
  vi.stubGlobal("location", { origin: "https://groundwork.example" });
  vi.stubGlobal("sessionStorage", { getItem: () => "gw_1_2" });
  vi.stubGlobal("navigator", { mediaDevices: { getUserMedia: async () => ({ getTracks: () => [track] }) } });
  vi.stubGlobal("WebSocket", Socket);
  vi.stubGlobal("MediaRecorder", Recorder);
});
afterEach(() => vi.unstubAllGlobals());

test("the server hears what was recorded, and the key is shown to it", async () => {
  const dictation = await dictate("de", heard);
  const socket = Socket.last;
  expect(socket.address).toBe("wss://groundwork.example/ws/voice-chat");
  expect(socket.protocols).toEqual(["groundwork", "openai-insecure-api-key.gw_1_2"]);
  dictation.stop();
  await vi.waitFor(() => expect(socket.sent).toHaveLength(3));
  expect(JSON.parse(socket.sent[0] as string)).toMatchObject({ input: { format: "opus" }, answers: false, asks: { language: "de" } });
  expect(JSON.parse(socket.sent[2] as string)).toEqual({ type: "commit" });
  expect(track.stop).toHaveBeenCalled();
  socket.tell("transcript", { text: "Wie lange?" });
  expect(heard.onText).toHaveBeenCalledWith("Wie lange?");
  expect(heard.onEnd).toHaveBeenCalledOnce();
  expect(heard.onProblem).not.toHaveBeenCalled();
});

test("says that the browser refused the microphone", async () => {
  vi.stubGlobal("navigator", { mediaDevices: { getUserMedia: () => Promise.reject(new Error("no")) } });
  await dictate("en", heard);
  expect(heard.onProblem).toHaveBeenCalledWith("refused");
  expect(heard.onEnd).toHaveBeenCalledOnce();
});

test("the browser hears where the server does not", async () => {
  Socket.hears = false;
  const dictation = await dictate("en", heard);
  dictation.stop();
  expect(Recognition.last.lang).toBe("en");
  expect(heard.onText).toHaveBeenCalledWith("How long?");
  expect(heard.onEnd).toHaveBeenCalledOnce();
});

test("without either it is said that nobody hears", async () => {
  Socket.hears = false;
  vi.stubGlobal("window", { isSecureContext: true, MediaRecorder: Recorder });
  expect(canDictate()).toBe(true);
  await dictate("en", heard);
  expect(heard.onProblem).toHaveBeenCalledWith("missing");
  vi.stubGlobal("window", { isSecureContext: false, MediaRecorder: Recorder });
  expect(canDictate()).toBe(false);
});
