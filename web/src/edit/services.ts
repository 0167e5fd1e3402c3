import type { Value } from './object'

/** The services of notices by the names that they give themselves. */
export const services: Record<string, string> = {
  email: 'E-mail',
  ntfy: 'ntfy',
  gotify: 'Gotify',
  discord: 'Discord',
  slack: 'Slack, Mattermost',
  telegram: 'Telegram',
  matrix: 'Matrix',
  teams: 'Microsoft Teams',
  json: 'JSON',
}

/** The service that a notice is sent by. */
export const serviceOf = (notice: Value): string | undefined => Object.keys(services).find((name) => notice[name] !== undefined)
