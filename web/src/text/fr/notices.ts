import type { Text } from '../en'
import { many } from '../many'

/** Notices: messages to people about events. */
export const notices: Text['notices'] = {
  lead: 'Des messages aux personnes sur ce qui se passe ici.',
  noneTitle: 'Aucune notification',
  none: 'Une notification est un message par e-mail, ntfy, Slack ou un autre service sur des événements, par exemple un serveur en panne ou un certificat qui expire.',
  service: 'Envoyer par',
  answered: (text) => `Réponse : ${text}`,
  held: 'Regroupés',
  heldUntil: (n, at) => `${many(n, 'événement', 'événements')}, envoi à ${at}`,
  more: (n) => `et ${many(n, 'autre événement', 'autres événements')}`,
  services: { email: 'E-mail (SMTP)', json: 'Autre service (JSON)' },
  levels: { info: 'tous les niveaux', warning: 'avertissements et erreurs', error: 'erreurs seulement' },
  notes: {
    ntfy: 'Abonnez-vous au sujet dans l’application ntfy. Choisissez un nom impossible à deviner, ou protégez le sujet par un jeton.',
    gotify: 'Créez une application dans Gotify ; son jeton y est affiché.',
    discord: 'Dans les paramètres du salon : Intégrations, Webhooks, Nouveau webhook, Copier l’URL du webhook.',
    slack: 'Créez une application Slack avec des webhooks entrants, ajoutez-la à un canal et copiez l’URL du webhook.',
    telegram: 'Créez un bot avec @BotFather, écrivez-lui, puis saisissez son jeton et l’identifiant du chat.',
    matrix: 'Créez un compte pour headgate, invitez-le dans le salon et saisissez son jeton d’accès.',
    teams: 'Dans le canal : Workflows, le modèle qui publie dans un canal à la réception d’une requête webhook. Copiez son URL.',
    json: 'Une requête POST avec un document JSON. Dans ses textes, {title}, {text}, {level}, {type}, {object}, {time} et {count} sont remplacés.',
  },
}
