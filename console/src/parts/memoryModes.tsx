// The ways in which what is remembered of a person may be used, and their words, and the choice of one.

import { useTranslation } from "react-i18next";

export const MEMORY_MODES = ["auto", "always", "agentic", "off"] as const;
export type MemoryMode = (typeof MEMORY_MODES)[number];

/** Words of a mode. One that only a newer server knows stands as it is. */
export function useMemoryMode(): (mode: string) => string {
  const { t } = useTranslation();
  return (mode) => {
    const known = MEMORY_MODES.find((each) => each === mode);
    return known ? t(`memoryMode.${known}`) : mode;
  };
}

/** Chooses a mode, or none of its own (""): then what applies around it decides. */
export function MemoryModeSelect(props: { id: string; value: MemoryMode | ""; onChange: (mode: MemoryMode | "") => void; testId: string }) {
  const { t } = useTranslation();
  return (
    <select
      id={props.id}
      value={props.value}
      onChange={(event) => props.onChange(event.target.value as MemoryMode | "")}
      data-testid={props.testId}
    >
      <option value="">{t("memoryMode.unset")}</option>
      {MEMORY_MODES.map((each) => (
        <option key={each} value={each}>
          {t(`memoryMode.${each}`)}
        </option>
      ))}
    </select>
  );
}
