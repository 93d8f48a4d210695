export function Operating() {
  return null;
}
