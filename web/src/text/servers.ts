import { many } from './many'

/** One server, from its own side: who uses it, and what operators do with it. */
export const servers = {
  open: (server: string) => `About ${server}`,
  reach: 'Used by',
  reachLead: 'All proxies and routes that can send requests to this server.',
  anyHost: 'any host',
  show: (n: number) => `Show ${n === 1 ? 'it' : `all ${n}`} in the list`,
  also: (n: number) => `also used by ${many(n, 'other proxy', 'other proxies')}`,
  as: { backup: 'backup', forward_auth: 'auth server', mirror: 'receives copies' } as Record<string, string>,
  log: 'Its requests in the log',
  visit: 'Open in a new tab',
  work: 'Take out of service',
  workLead: 'For maintenance. The server stays out of service across restarts. The configuration is not changed.',
  drain: 'Drain',
  drainHelp: 'No new clients; clients with a sticky cookie stay.',
  disable: 'Disable',
  disableHelp: 'No clients at all.',
  enable: 'Return to service',
  enableHelp: 'It receives requests again.',
  done: { drain: 'The server is draining: it gets no new clients.', disable: 'The server is disabled.', enable: 'The server is back in service.' } as Record<string, string>,
  held: (hold: string, who: string) => `${hold} by ${who}`,
}
