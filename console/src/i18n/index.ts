// The languages of the console. English is always there; another is fetched when it is chosen.

import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import en from "./en.json";

export const LANGUAGES = { en: "English", de: "Deutsch", ru: "Русский", he: "עברית" } as const;
export type Language = keyof typeof LANGUAGES;

const LATIN = /[A-Za-z]/;
const STORED = "groundwork.language";
const OTHERS: Record<Exclude<Language, "en">, () => Promise<{ default: typeof en }>> = {
  de: () => import("./de.json"),
  ru: () => import("./ru.json") as unknown as Promise<{ default: typeof en }>,
  he: () => import("./he.json") as unknown as Promise<{ default: typeof en }>,
};

declare module "i18next" {
  interface CustomTypeOptions {
    defaultNS: "translation";
    resources: { translation: typeof en };
  }
}

/** Starts with the language that was chosen, or else with the first of the browser's that there is. */
export async function startLanguage(): Promise<void> {
  await i18next.use(initReactI18next).init({
    lng: "en",
    fallbackLng: "en",
    resources: { en: { translation: en } },
    // A name that is written from left to right keeps its marks on its own side in a line from right to left.
    interpolation: {
      escapeValue: true,
      escape: (value) => (i18next.dir() === "rtl" && LATIN.test(value) ? `\u2068${value}\u2069` : value),
    },
    returnNull: false,
  });
  await chooseLanguage(preferred()).catch(() => {}); // without its texts the page is in English
}

/** Shows everything in that language from now on. */
export async function chooseLanguage(language: Language, remember = false): Promise<void> {
  if (language !== "en" && !i18next.hasResourceBundle(language, "translation")) {
    i18next.addResourceBundle(language, "translation", (await OTHERS[language]()).default);
  }
  await i18next.changeLanguage(language);
  document.documentElement.lang = language;
  document.documentElement.dir = i18next.dir(language);
  if (remember) localStorage.setItem(STORED, language);
}

function preferred(): Language {
  const chosen = localStorage.getItem(STORED);
  const wanted = [...(chosen ? [chosen] : []), ...navigator.languages.map((each) => each.split("-")[0] ?? "")];
  return (wanted.find((each) => each in LANGUAGES) as Language | undefined) ?? "en";
}
