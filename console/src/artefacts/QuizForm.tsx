// A quiz as a form: graded by the server, and shown again as it was answered, on any device.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useTranslation } from "react-i18next";
import { api, dataOf } from "../api/client";
import type { Schemas } from "../api/types";
import { Button, Failure, Icon, Status } from "../parts";
import type { QuizBody } from "./bodies";

type Question = QuizBody["questions"][number];

/** The form of a quiz that a run made. Without a thread it is shown and not graded. */
export function QuizForm({ questions, threadId, runId }: { questions: Question[]; threadId: string | null; runId: string }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [given, setGiven] = useState<Record<string, string>>({});
  const path = { thread_id: threadId ?? "", quiz_id: runId };
  const key = ["quiz", threadId, runId];
  const { data: quiz } = useQuery({
    queryKey: key,
    queryFn: () => dataOf(api.GET("/v1/threads/{thread_id}/quizzes/{quiz_id}", { params: { path } })),
    enabled: Boolean(threadId),
    retry: false,
  });
  const grade = useMutation({
    mutationFn: () => {
      const answers = Object.entries(given)
        .filter(([, value]) => value.trim())
        .map(([question_id, value]) => ({ question_id, given: value.trim() }));
      return dataOf(api.POST("/v1/threads/{thread_id}/quizzes/{quiz_id}/answers", { params: { path }, body: { answers } }));
    },
    onSuccess: (graded) => queries.setQueryData(key, graded),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    grade.mutate();
  };
  const isAnswered = Object.values(given).some((value) => value.trim());
  return (
    <form className="quiz" onSubmit={submit} data-testid="quiz">
      {questions.map((question) => {
        const result = quiz?.questions.find(({ id }) => id === question.id)?.result ?? null;
        return (
          <QuizQuestion
            key={question.id}
            question={question}
            name={`${runId}-${question.id}`}
            result={result}
            value={given[question.id] ?? result?.given ?? ""}
            onChange={(value) => setGiven((before) => ({ ...before, [question.id]: value }))}
          />
        );
      })}
      <Failure>{grade.error?.message}</Failure>
      {threadId && (
        <div className="actions">
          <Status className="hint">
            {quiz?.answered
              ? t("quiz.state", { right: quiz.right, answered: quiz.answered, open: quiz.questions.length - quiz.answered })
              : ""}
          </Status>
          <Button look="primary" type="submit" isDisabled={grade.isPending || !isAnswered} data-testid="quiz-send">
            {t("quiz.check")}
          </Button>
        </div>
      )}
    </form>
  );
}

function QuizQuestion({
  question: { kind, question, options = [] },
  name,
  value,
  result,
  onChange,
}: {
  question: Question;
  name: string;
  value: string;
  result: Schemas["GradedAnswer"] | null;
  onChange: (value: string) => void;
}) {
  const { t } = useTranslation();
  const choices = kind === "multiple_choice" ? options : kind === "true_false" ? ["true", "false"] : [];
  const word = (choice: string) => (kind === "true_false" ? t(choice === "true" ? "quiz.true" : "quiz.false") : choice);
  return (
    <fieldset data-testid="quiz-question" data-kind={kind}>
      <legend dir="auto">{question}</legend>
      {choices.map((choice) => (
        <label key={choice} className="check" dir="auto">
          <input type="radio" name={name} value={choice} checked={value === choice} onChange={() => onChange(choice)} /> {word(choice)}
        </label>
      ))}
      {!choices.length && (
        <input
          name={name}
          value={value}
          maxLength={1000}
          aria-label={question}
          onChange={(event) => onChange(event.target.value)}
          dir="auto"
        />
      )}
      {result && value === result.given && (
        <p className="quiz-verdict" data-status={result.is_right ? "supported" : "insufficient"} data-testid="quiz-verdict">
          <Icon name={result.is_right ? "check" : "close"} />
          <span dir="auto">
            {result.is_right ? t("quiz.right") : t("quiz.wrong", { answer: result.answer })} {result.explanation}
          </span>
        </p>
      )}
    </fieldset>
  );
}
