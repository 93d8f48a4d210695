// An OpenID provider: node issuer.js PORT KEYS_FILE. The service `crawler` (secret `s3cret`) gets tokens for `groundwork`, as JSON Web
// Tokens signed with the first of the keys; people log in for the console with any password.
import { readFileSync } from "node:fs";

import Provider from "oidc-provider";

const [port, keysFile] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const keys = JSON.parse(readFileSync(keysFile, "utf8"));

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "crawler",
      client_secret: "s3cret",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
    },
    {
      client_id: "console",
      client_secret: "s3cret too",
      redirect_uris: ["http://127.0.0.1:8080/oidc/callback"],
      id_token_signed_response_alg: keys[0].alg,
    },
  ],
  jwks: { keys },
  scopes: ["ingest", "query"],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: (context, client) => (client.clientId === "crawler" ? "urn:groundwork" : []),
      getResourceServerInfo: () => ({
        audience: "groundwork",
        scope: "ingest query",
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: keys[0].alg } },
      }),
      useGrantedResource: () => true,
    },
  },
  cookies: { keys: ["of this test"] },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
