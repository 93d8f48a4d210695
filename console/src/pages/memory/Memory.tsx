export function Memory() {
  return null;
}
