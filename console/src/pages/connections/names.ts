// What people call the services that can be connected.

const NAMES: Record<string, string> = { github: "GitHub", mail: "E-mail", "google-drive": "Google Drive" };

export const nameOf = (service: string) => NAMES[service] ?? service;
