// What a person says of each kind of source. docs/sources.md says the same; the server refuses what it does not know.

/** A member of `settings`, or of `secrets`. */
export interface KindField {
  name: FieldName;
  isRequired?: boolean;
  isSecret?: boolean;
  example?: string;
}

export type KindName = "s3" | "web" | "feed" | "github" | "imap" | "drive" | "folder";
export type FieldName =
  | "bucket"
  | "endpoint"
  | "region"
  | "prefix"
  | "only"
  | "access_key"
  | "secret_key"
  | "url"
  | "path"
  | "depth"
  | "pages"
  | "repository"
  | "branch"
  | "token"
  | "server"
  | "user"
  | "password"
  | "folders"
  | "since"
  | "security"
  | "port"
  | "access"
  | "acts_for"
  | "service_account"
  | "client_id"
  | "client_secret"
  | "refresh_token"
  | "folder";

const only: KindField = { name: "only", example: "*.md,*.pdf" };
const access: KindField = { name: "access", example: "source, collection" };

export const KINDS: Record<KindName, KindField[]> = {
  web: [
    { name: "url", isRequired: true, example: "https://…" },
    { name: "path", example: "/guide/" },
    { name: "depth", example: "3" },
    { name: "pages", example: "200" },
  ],
  github: [
    { name: "repository", isRequired: true, example: "octocat/papers" },
    { name: "branch" },
    { name: "path", example: "docs" },
    only,
    access,
    { name: "token", isSecret: true },
  ],
  s3: [
    { name: "bucket", isRequired: true },
    { name: "endpoint", example: "https://…" },
    { name: "region", example: "us-east-1" },
    { name: "prefix", example: "reports/" },
    only,
    { name: "access_key", isSecret: true },
    { name: "secret_key", isSecret: true },
  ],
  imap: [
    { name: "server", isRequired: true, example: "imap.example.com" },
    { name: "user", isRequired: true, example: "anna@example.com" },
    { name: "password", isRequired: true, isSecret: true },
    access,
    { name: "folders", example: "INBOX,Projects/*" },
    { name: "since", example: "2024-01-31" },
    { name: "security", example: "tls, starttls" },
    { name: "port", example: "993" },
  ],
  drive: [
    { name: "folder", isRequired: true, example: "drive.google.com/drive/folders/…" },
    only,
    access,
    { name: "service_account", isSecret: true },
    { name: "acts_for", example: "anna@example.com" },
    { name: "client_id", isSecret: true },
    { name: "client_secret", isSecret: true },
    { name: "refresh_token", isSecret: true },
  ],
  feed: [{ name: "url", isRequired: true, example: "https://…" }],
  folder: [{ name: "folder", isRequired: true }, { name: "path", example: "2024" }, only],
};

export const isKind = (kind: string): kind is KindName => kind in KINDS;
