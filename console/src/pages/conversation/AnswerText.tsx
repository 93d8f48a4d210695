// The words of an answer with the marks of their citations. Markdown of a model is drawn as it arrives; quotes are shown as they are.

import { lazy, useDeferredValue } from "react";
import type { Citation, Evidence } from "../../api/types";
import { CitationMark } from "../../passage/CitationMark";
import type { FoldedRun } from "../../run/fold";
import { Later } from "../../shell/Later";
import { pieces, withoutBegunMark } from "../../text";

const Markdown = lazy(() => import("./Markdown"));

export interface AnswerTextProps {
  run: Pick<FoldedRun, "answer" | "citations" | "verification" | "method">;
  evidence?: Evidence[];
  isModel: boolean;
  isLive?: boolean;
  onOpen: (number: number) => void;
}

export function AnswerText({ run, evidence = [], isModel, isLive = false, onOpen }: AnswerTextProps) {
  // While a model writes, its marks are numbers of passages. Quoted answers come at once, with numbers of their own.
  const cited = new Map<number, Citation | Evidence>(
    (run.citations.length || !isModel ? run.citations : evidence).map((each) => [each.number, each]),
  );
  const text = useDeferredValue(isLive ? withoutBegunMark(run.answer) : run.answer);
  const mark = (number: number, key: string) => {
    const citation = cited.get(number);
    return citation ? (
      <CitationMark key={key} citation={citation} verification={run.verification} onOpen={() => onOpen(number)} />
    ) : (
      `[${number}]`
    );
  };
  const plain = (
    <p className="plain-answer">
      {pieces(text, (number) => cited.has(number)).map((piece, index) => ("text" in piece ? piece.text : mark(piece.number, `${index}`)))}
    </p>
  );
  return (
    <div className="answer" dir="auto" data-testid="answer" aria-busy={isLive}>
      {text &&
        (isModel ? (
          <Later fallback={plain} instead={plain}>
            <Markdown text={text} isLive={isLive} isKnown={(number) => cited.has(number)} mark={mark} />
          </Later>
        ) : (
          plain
        ))}
    </div>
  );
}
