import { argumentText } from "../text";

/** Arguments of a tool as a list of names and values; those in `marked` stand out. */
export function Arguments({ given, marked = [], none = "" }: { given: Record<string, unknown>; marked?: string[]; none?: string }) {
  const names = Object.keys(given);
  if (!names.length) return none ? <p className="hint">{none}</p> : null;
  return (
    <dl className="arguments">
      {names.map((name) => (
        <div key={name} className={marked.includes(name) ? "marked" : undefined}>
          <dt dir="auto">{name}</dt>
          <dd dir="auto">{argumentText(given[name])}</dd>
        </div>
      ))}
    </dl>
  );
}
