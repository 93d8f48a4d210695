// Programs for OpenAI's official client for Node: `node scenarios.js NAME BASE_URL MODEL`. Each prints what came of it as JSON.

import OpenAI, { toFile } from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const [name, baseURL, model] = process.argv.slice(2);
const client = new OpenAI({ apiKey: "any", baseURL, maxRetries: 0 });

const QUESTION = "How long is the leave, and what is the weather in Emden?";
const WEATHER = {
  name: "weather",
  description: "Tells it.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const Leave = z.object({ days: z.number(), who: z.string() });
const asked = (content) => [{ role: "user", content }];

async function chat() {
  const answer = await client.chat.completions.create({ model, messages: asked(QUESTION) });
  const { message, finish_reason } = answer.choices[0];
  const cited = message.annotations.map(({ url_citation: place }) =>
    message.content.slice(place.start_index, place.end_index),
  );
  const models = [];
  for await (const each of client.models.list()) models.push(each.id);
  return { content: message.content, finish_reason, cited, models };
}

async function stream() {
  const pieces = [];
  const runner = client.chat.completions
    .stream({ model, messages: asked(QUESTION), stream_options: { include_usage: true } })
    .on("content", (piece) => pieces.push(piece));
  const whole = await runner.finalChatCompletion();
  return { pieces, content: whole.choices[0].message.content, usage: whole.usage };
}

async function tools() {
  const cities = [];
  const called = ({ city }) => {
    cities.push(city);
    return "Rain, 9 degrees.";
  };
  const runner = client.chat.completions.runTools({
    model,
    messages: asked(QUESTION),
    tools: [{ type: "function", function: { ...WEATHER, function: called, parse: JSON.parse } }],
  });
  return { content: await runner.finalContent(), cities };
}

async function structured() {
  const messages = asked("How long is the leave?");
  const completion = await client.chat.completions.parse({
    model,
    messages,
    response_format: zodResponseFormat(Leave, "leave"),
  });
  const response = await client.responses.parse({
    model,
    input: messages[0].content,
    text: { format: zodTextFormat(Leave, "leave") },
  });
  return { completion: completion.choices[0].message.parsed, response: response.output_parsed };
}

async function files() {
  const text = "The lighthouse of Falkensand was switched off in 1987.";
  const store = await client.vectorStores.create({ name: "Coast" });
  const added = await client.vectorStores.files.uploadAndPoll(store.id, await toFile(Buffer.from(text), "a.txt"), {
    pollIntervalMs: 50,
  });
  const other = await client.files.create({
    file: await toFile(Buffer.from("The ferry was docked for nine weeks."), "b.txt"),
    purpose: "assistants",
  });
  const batch = await client.vectorStores.fileBatches.createAndPoll(
    store.id,
    { file_ids: [other.id] },
    { pollIntervalMs: 50 },
  );
  const found = [];
  for await (const each of client.vectorStores.search(store.id, { query: "When was the lighthouse switched off?" }))
    found.push(each.file_id);
  const names = [];
  for await (const each of client.vectorStores.files.list(store.id, { order: "asc", limit: 1 })) names.push(each.id);
  const content = await (await client.files.content(added.id)).text();
  const removed = await client.vectorStores.delete(store.id);
  const gone = await client.files.delete(added.id);
  const missing = await client.files.retrieve(added.id).catch((error) => error);
  return {
    uploaded: [added.id, other.id],
    status: [added.status, batch.status],
    found,
    names,
    content,
    deleted: [removed.deleted, gone.deleted],
    missing: missing instanceof OpenAI.NotFoundError,
  };
}

async function responses() {
  const tools = [{ type: "function", ...WEATHER, strict: null }];
  const first = await client.responses.create({ model, input: QUESTION, tools });
  const [call] = first.output;
  const output = { type: "function_call_output", call_id: call.call_id, output: "Rain." };
  const second = await client.responses.create({ model, input: [output], tools, previous_response_id: first.id });
  const events = client.responses.stream({ model, input: "And what else?", previous_response_id: second.id });
  let streamed = "";
  events.on("response.output_text.delta", (event) => (streamed += event.delta));
  const third = await events.finalResponse();
  const kept = await client.responses.retrieve(second.id);
  await client.responses.delete(second.id);
  const missing = await client.responses.retrieve(second.id).catch((error) => error);
  return {
    call: [call.name, call.arguments],
    second: second.output_text,
    streamed,
    third: third.output[0].content[0].text,
    kept: kept.output_text,
    missing: missing instanceof OpenAI.NotFoundError,
  };
}

async function refused() {
  const error = await client.chat.completions
    .create({ model: "gpt-5", messages: asked(QUESTION) })
    .catch((error) => error);
  return { status: error.status, code: error.code, type: error.type, message: error.message };
}

const scenarios = { chat, stream, tools, structured, files, responses, refused };
console.log(JSON.stringify(await scenarios[name]()));
