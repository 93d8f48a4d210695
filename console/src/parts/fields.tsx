// Fields of a form with their label: a line of text, and a choice of one of several.

import type { ComponentProps, ReactNode } from "react";
import type { Collection } from "../api/types";
import { Field } from ".";

/** A line of text. What else an `input` takes is handed on to it. */
export function TextField({
  label,
  hint,
  onChange,
  testId,
  ...rest
}: Omit<ComponentProps<"input">, "onChange"> & { label: string; hint?: string; onChange: (value: string) => void; testId?: string }) {
  return (
    <Field label={label} hint={hint}>
      {(id) => <input id={id} dir="auto" {...rest} onChange={(event) => onChange(event.target.value)} data-testid={testId} />}
    </Field>
  );
}

/** A choice of one of several; `words` gives what is shown of each. */
export function SelectField<T extends string>({
  label,
  hint,
  value,
  options,
  words,
  onChange,
  testId,
  dir,
}: {
  label: string;
  hint?: string;
  value: T;
  options: readonly T[];
  words: (option: T) => ReactNode;
  onChange: (value: T) => void;
  testId?: string;
  dir?: "auto" | "ltr";
}) {
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <select id={id} value={value} onChange={(event) => onChange(event.target.value as T)} dir={dir} data-testid={testId}>
          {options.map((each) => (
            <option key={each} value={each}>
              {words(each)}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** A choice of one of these collections, by their names. */
export function CollectionField({
  label,
  value,
  collections,
  onChange,
}: {
  label: string;
  value: string;
  collections: Collection[];
  onChange: (id: string) => void;
}) {
  const names = new Map(collections.map(({ id, name }) => [id, name || id]));
  return (
    <SelectField label={label} value={value} options={[...names.keys()]} words={(id) => names.get(id)} onChange={onChange} dir="auto" />
  );
}
