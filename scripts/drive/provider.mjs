// An identity provider on loopback (npm's oidc-provider): node provider.mjs PORT AUDIENCE KEYS.json
// Anybody may register a client and log in under any name: "ada@team-a" is ada of the tenant team-a.
import { readFileSync } from 'node:fs';
import Provider from 'oidc-provider';

const [port, audience, keys] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

const provider = new Provider(issuer, {
  jwks: JSON.parse(readFileSync(keys)),
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: (ctx, token) => ({ tenant: token.accountId?.split('@')[1] }),
  pkce: { required: () => true },
  scopes: ['openid', 'offline_access', 'read', 'fetch'],
  issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
  ttl: { AccessToken: 600, Grant: 3600, IdToken: 600, Interaction: 600, RefreshToken: 3600, Session: 3600 },
  features: {
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => audience,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => ({
        audience: resource,
        scope: 'read fetch',
        accessTokenFormat: 'jwt',
        accessTokenTTL: 600,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
});

for (const event of ['server_error', 'authorization.error', 'grant.error', 'registration_create.error']) {
  provider.on(event, (ctx, error) => console.error(event, error.message, error.error_description ?? error.stack));
}
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));
