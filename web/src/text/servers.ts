import { many } from './many'

/** One server, from its own side: who reaches it, and what operators do with it. */
export const servers = {
  open: (server: string) => `About ${server}`,
  reach: 'Who reaches this server?',
  reachLead: 'Every proxy and route that may send requests to it.',
  anyHost: 'any host',
  show: (n: number) => `Show ${n === 1 ? 'it' : `all ${n}`} in the list`,
  also: (n: number) => `also used by ${many(n, 'other proxy', 'other proxies')}`,
  as: { backup: 'backup', forward_auth: 'asked for sign-in', mirror: 'gets copies' } as Record<string, string>,
  log: 'Its requests in the log',
  visit: 'Open it in a new tab',
  work: 'Take it out',
  workLead: 'For repairs: no document is touched, and it lasts over restarts.',
  drain: 'Drain',
  drainHelp: 'No new clients; those who are pinned to it go on.',
  disable: 'Disable',
  disableHelp: 'Nobody at all.',
  enable: 'Put it back',
  enableHelp: 'It gets its clients again.',
  done: { drain: 'It is drained: no new clients come to it.', disable: 'It is disabled.', enable: 'It is back.' } as Record<string, string>,
  held: (hold: string, who: string) => `${hold} by ${who}`,
}
