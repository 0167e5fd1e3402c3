import { count, many } from './many'

/** What a plan says beside its changes: consequences, and the impact on recent requests. */
export const plan = {
  danger: 'This opens access',
  warnings: 'Check this',
  visitors: 'What changes for visitors',
  needPassword: (n: number) => `${many(n, 'host')} will require a password.`,
  needNoPassword: (n: number) => `${many(n, 'host')} will no longer require a password.`,
  drains: (n: number) => `${many(n, 'open connection')} will drain.`,
  moreHosts: (n: number) => `and ${count(n)} more`,
  moreChanges: (n: number) => `Show ${many(n, 'more change', 'more changes')}`,
  whatIf: 'Impact on recent requests',
  none: (requests: number) => `No change for the last ${many(requests, 'request')}.`,
  changed: (requests: number, n: number) => `Of the last ${many(requests, 'request')}, ${count(n)} would be handled differently:`,
  counts: {
    refused: (n: number) => `${count(n)} rejected`,
    password: (n: number) => `${count(n)} asked for a password`,
    allowed: (n: number) => `${count(n)} no longer rejected`,
    proxy: (n: number) => `${count(n)} handled by another proxy`,
    route: (n: number) => `${count(n)} handled by another route`,
    servers: (n: number) => `${count(n)} sent to other servers`,
    answer: (n: number) => `${count(n)} with another response`,
  } as Record<string, (n: number) => string>,
  passwordHelp: 'The requests were evaluated without passwords, because passwords are not recorded. Visitors who have a password still get in.',
  left: (n: number) => `${many(n, 'request')} could not be evaluated: a part of the request is not recorded, or the time limit was reached.`,
  times: (n: number) => (n > 1 ? `${count(n)} times` : ''),
  now: 'now',
  then: 'then',
  noPort: 'no port accepts it',
  status: (code: number, reason: string) => (reason ? `response ${code}, ${reason}` : `response ${code}`),
  to: (url: string) => `to ${url}`,
}
