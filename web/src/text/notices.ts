import { many } from './many'

/** Notices: messages to people about events. */
export const notices = {
  lead: 'Messages to people about events in headgate.',
  noneTitle: 'No notices yet',
  none: 'A notice is a message by e-mail, ntfy, Slack or another service about events, such as a failing server or a certificate that expires.',
  service: 'Send by',
  answered: (text: string) => `Response: ${text}`,
  held: 'Collected',
  heldUntil: (n: number, at: string) => `${many(n, 'event')}, sent at ${at}`,
  more: (n: number) => `and ${many(n, 'more event')}`,
  services: { email: 'E-mail (SMTP)', json: 'Other service (JSON)' } as Record<string, string>,
  levels: { info: 'all levels', warning: 'warnings and errors', error: 'errors only' } as Record<string, string>,
  notes: {
    ntfy: 'Subscribe to the topic in the ntfy app. Choose a name that cannot be guessed, or protect the topic with a token.',
    gotify: 'Create an application in Gotify; its token is shown there.',
    discord: 'In the settings of the channel: Integrations, Webhooks, New webhook, Copy webhook URL.',
    slack: 'Create a Slack app with incoming webhooks, add it to a channel, and copy the webhook URL.',
    telegram: 'Create a bot with @BotFather, send it a message, and enter its token and the ID of the chat.',
    matrix: 'Create an account for headgate, invite it to the room, and enter its access token.',
    teams: 'In the channel: Workflows, the template that posts to a channel when a webhook request is received. Copy its URL.',
    json: 'A POST request with a JSON document. In its texts, {title}, {text}, {level}, {type}, {object}, {time} and {count} are replaced.',
  } as Record<string, string>,
}
