import { many } from './many'

/** What a plan says beside its changes: consequences, and what would become of recent requests. */
export const plan = {
  danger: 'This opens something',
  warnings: 'Worth a look',
  needPassword: (n: number) => `${many(n, 'host')} will ask for a password from now on.`,
  needNoPassword: (n: number) => `${many(n, 'host')} will no longer ask for a password.`,
  drains: (n: number) => `${many(n, 'open connection')} will drain.`,
  moreHosts: (n: number) => `and ${n.toLocaleString('en')} more`,
  moreChanges: (n: number) => `Show ${many(n, 'more change', 'more changes')}`,
  whatIf: 'Recent requests, decided again',
  none: (requests: number) => `Of the last ${many(requests, 'request')} none would be handled otherwise.`,
  changed: (requests: number, n: number) => `Of the last ${many(requests, 'request')} ${n.toLocaleString('en')} would be handled otherwise:`,
  counts: {
    refused: (n: number) => `${n} refused`,
    password: (n: number) => `${n} now need a password`,
    allowed: (n: number) => `${n} no longer refused`,
    proxy: (n: number) => `${n} taken by another proxy`,
    route: (n: number) => `${n} taken by another route`,
    servers: (n: number) => `${n} sent to other servers`,
    answer: (n: number) => `${n} answered otherwise`,
  } as Record<string, (n: number) => string>,
  passwordHelp: 'Those who have a password get in as before: passwords are not kept with requests, so they were decided without.',
  left: (n: number) => `${many(n, 'request')} could not be decided: a part of them is not kept, or the time was over.`,
  times: (n: number) => (n > 1 ? `${n.toLocaleString('en')} times` : ''),
  now: 'now',
  then: 'then',
  noPort: 'no port takes it',
  status: (code: number, reason: string) => (reason ? `answer ${code}, ${reason}` : `answer ${code}`),
  to: (url: string) => `to ${url}`,
}
