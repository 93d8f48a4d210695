// The ways in which what is remembered of a person may be used, and their words.

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
