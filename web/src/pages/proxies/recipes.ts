import type { Value } from '@/edit/object'

/**
 * What well-known applications need of a proxy beyond a host and a server. WebSocket, upgrades
 * and long downloads need no setting: connections that go on are not limited. Each recipe
 * names only what differs from the defaults.
 */
export type Recipe = { id: string; name: string; port: number; https?: boolean; proxy: Value; route?: Value; more?: (server: string) => Value[] }

const uploads = (limit: string, timeout = '5m'): Value => ({ request_body_limit: limit, request_timeout: timeout })

export const recipes: Recipe[] = [
  {
    id: 'nextcloud',
    name: 'Nextcloud',
    port: 80,
    proxy: {
      ...uploads('16GiB', '10m'),
      redirects: [{ regex: '^/\\.well-known/(carddav|caldav)/?$', target: '/remote.php/dav/', status: 301 }],
      headers: [{ direction: 'response', name: 'Strict-Transport-Security', value: 'max-age=15552000; includeSubDomains', operation: 'set_if_absent' }],
    },
  },
  { id: 'home_assistant', name: 'Home Assistant', port: 8123, proxy: uploads('256MiB', '1m') },
  { id: 'jellyfin', name: 'Jellyfin', port: 8096, proxy: { request_timeout: '2m', headers: [{ direction: 'request', name: 'X-Real-IP', value: '{client_ip}' }] } },
  { id: 'immich', name: 'Immich', port: 2283, proxy: uploads('50GiB', '10m') },
  { id: 'vaultwarden', name: 'Vaultwarden', port: 80, proxy: { ...uploads('525MiB', '1m'), headers: [{ direction: 'request', name: 'X-Real-IP', value: '{client_ip}' }] } },
  { id: 'plex', name: 'Plex', port: 32400, proxy: { request_timeout: '2m', headers: [{ direction: 'request', name: 'X-Real-IP', value: '{client_ip}' }] } },
  { id: 'gitea', name: 'Gitea', port: 3000, proxy: uploads('4GiB', '10m') },
  {
    id: 'matrix',
    name: 'Matrix (Synapse)',
    port: 8008,
    proxy: { ...uploads('200MiB', '2m') },
    more: (host) => [
      { path: '/.well-known/matrix/server', fixed_response: { status: 200, body: JSON.stringify({ 'm.server': `${host}:443` }), content_type: 'application/json' } },
      {
        path: '/.well-known/matrix/client',
        fixed_response: { status: 200, body: JSON.stringify({ 'm.homeserver': { base_url: `https://${host}` } }), content_type: 'application/json' },
        cors: { allow_origins: ['*'] },
      },
    ],
  },
  { id: 'grafana', name: 'Grafana', port: 3000, proxy: { request_timeout: '2m' } },
  { id: 'websocket', name: 'WebSocket', port: 3000, proxy: { request_timeout: '2m' } },
]

/** The network addresses that are private (RFC 1918, RFC 4193), this machine, and tailnets. */
export const privateNetworks = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '127.0.0.0/8', 'fc00::/7', 'fe80::/10', '::1/128']
