// The names of the API's types that the console uses. schema.ts is generated from docs/openapi.json.

import type { components } from "./schema";

export type Schemas = components["schemas"];

export type Approval = Schemas["Approval"];
export type Artefact = Schemas["Artefact"];
export type BoundingBox = Schemas["BoundingBox"];
export type Citation = Schemas["Citation"];
export type Collection = Schemas["Collection"];
export type Degradation = Schemas["Degradation"];
export type Document = Schemas["Document"];
export type Evidence = Schemas["Evidence"];
export type Message = Schemas["Message"];
export type Run = Schemas["Run"];
export type Thread = Schemas["Thread"];
export type Verification = Schemas["Verification"];
export type Verdict = Schemas["SentenceVerdict"];

/** The events of a run and what each carries. */
export interface RunEvents {
  run: Schemas["RunStartedEvent"];
  agent: Schemas["AgentEvent"];
  thinking: Schemas["ThinkingEvent"];
  plan: Schemas["PlanEvent"];
  retrieval: Schemas["RetrievalEvent"];
  tool: Schemas["ToolEvent"];
  tool_result: Schemas["ToolResultEvent"];
  approval: Schemas["ApprovalEvent"];
  input: Schemas["InputEvent"];
  parked: Schemas["ParkedEvent"];
  token: Schemas["TokenEvent"];
  claim: Schemas["ClaimEvent"];
  verification: Schemas["VerificationEvent"];
  answer: Schemas["AnswerEvent"];
  usage: Schemas["UsageEvent"];
  coverage: Schemas["CoverageEvent"];
  safety: Schemas["SafetyEvent"];
  artefact: Schemas["ArtefactEvent"];
  error: Schemas["ErrorEvent"];
  done: Schemas["DoneEvent"];
}

export type RunEvent = { [Name in keyof RunEvents]: { event: Name; data: RunEvents[Name] } }[keyof RunEvents];
