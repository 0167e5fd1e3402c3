import type { Text } from '../en'
import { many } from '../many'

/** Notices: messages to people about events. */
export const notices: Text['notices'] = {
  lead: 'Nachrichten an Menschen über das, was hier geschieht.',
  noneTitle: 'Noch keine Benachrichtigungen',
  none: 'Eine Benachrichtigung ist eine Nachricht per E-Mail, ntfy, Slack oder einen anderen Dienst über Ereignisse, zum Beispiel einen ausgefallenen Server oder ein ablaufendes Zertifikat.',
  service: 'Senden mit',
  answered: (text) => `Antwort: ${text}`,
  held: 'Gesammelt',
  heldUntil: (n, at) => `${many(n, 'Ereignis', 'Ereignisse')}, gesendet um ${at}`,
  more: (n) => `und ${many(n, 'weiteres Ereignis', 'weitere Ereignisse')}`,
  services: { email: 'E-Mail (SMTP)', json: 'Anderer Dienst (JSON)' },
  levels: { info: 'alle Stufen', warning: 'Warnungen und Fehler', error: 'nur Fehler' },
  notes: {
    ntfy: 'Abonnieren Sie das Thema in der ntfy-App. Wählen Sie einen Namen, den niemand errät, oder schützen Sie das Thema mit einem Token.',
    gotify: 'Legen Sie in Gotify eine Anwendung an; dort steht ihr Token.',
    discord: 'In den Einstellungen des Kanals: Integrationen, Webhooks, Neuer Webhook, Webhook-URL kopieren.',
    slack: 'Erstellen Sie eine Slack-App mit Incoming Webhooks, fügen Sie sie einem Kanal hinzu und kopieren Sie die Webhook-URL.',
    telegram: 'Erstellen Sie einen Bot mit @BotFather, schreiben Sie ihm, und geben Sie sein Token und die ID des Chats ein.',
    matrix: 'Legen Sie ein Konto für headgate an, laden Sie es in den Raum ein und geben Sie sein Zugriffstoken ein.',
    teams: 'Im Kanal: Workflows, die Vorlage, die bei einer Webhook-Anfrage in einem Kanal postet. Kopieren Sie ihre URL.',
    json: 'Eine POST-Anfrage mit einem JSON-Dokument. In seinen Texten werden {title}, {text}, {level}, {type}, {object}, {time} und {count} ersetzt.',
  },
}
