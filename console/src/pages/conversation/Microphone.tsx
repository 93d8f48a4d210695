// Speaking instead of typing, where the browser allows it.

import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { canDictate, dictate, type Dictation } from "../../api/dictation";
import { IconButton } from "../../parts";

/** `onText` gets what was said, `onProblem` why nothing was heard. */
export function Microphone({ onText, onProblem }: { onText: (text: string) => void; onProblem: (problem: string) => void }) {
  const { t, i18n } = useTranslation();
  const [isListening, setListening] = useState(false);
  const dictation = useRef<Dictation | null>(null);
  useEffect(() => () => dictation.current?.stop(), []);
  if (!canDictate()) return null;
  const press = async () => {
    if (isListening) {
      dictation.current?.stop();
      return;
    }
    onProblem("");
    setListening(true);
    dictation.current = await dictate(i18n.language, {
      onText,
      onProblem: (problem) => onProblem(t(`ask.speech_${problem}`)),
      onEnd: () => setListening(false),
    });
  };
  return (
    <IconButton
      label={isListening ? t("ask.stopSpeaking") : t("ask.speak")}
      icon="microphone"
      className={isListening ? "is-set" : ""}
      aria-pressed={isListening}
      onPress={press}
      data-testid="microphone"
    />
  );
}
