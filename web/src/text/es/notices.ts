import type { Text } from '../en'
import { many } from '../many'

/** Notices: messages to people about events. */
export const notices: Text['notices'] = {
  lead: 'Mensajes a personas sobre lo que ocurre aquí.',
  noneTitle: 'Aún no hay avisos',
  none: 'Un aviso es un mensaje por correo, ntfy, Slack u otro servicio sobre eventos, por ejemplo un servidor que falla o un certificado que caduca.',
  service: 'Enviar por',
  answered: (text) => `Respuesta: ${text}`,
  held: 'Agrupados',
  heldUntil: (n, at) => `${many(n, 'evento', 'eventos')}, se envían a las ${at}`,
  more: (n) => `y ${many(n, 'evento más', 'eventos más')}`,
  services: { email: 'Correo (SMTP)', json: 'Otro servicio (JSON)' },
  levels: { info: 'todos los niveles', warning: 'advertencias y errores', error: 'solo errores' },
  notes: {
    ntfy: 'Suscríbase al tema en la aplicación ntfy. Elija un nombre que no se pueda adivinar, o proteja el tema con un token.',
    gotify: 'Cree una aplicación en Gotify; allí se muestra su token.',
    discord: 'En los ajustes del canal: Integraciones, Webhooks, Nuevo webhook, Copiar URL del webhook.',
    slack: 'Cree una aplicación de Slack con webhooks entrantes, añádala a un canal y copie la URL del webhook.',
    telegram: 'Cree un bot con @BotFather, escríbale un mensaje e introduzca su token y el ID del chat.',
    matrix: 'Cree una cuenta para headgate, invítela a la sala e introduzca su token de acceso.',
    teams: 'En el canal: Workflows, la plantilla que publica en un canal al recibir una petición de webhook. Copie su URL.',
    json: 'Una petición POST con un documento JSON. En sus textos se sustituyen {title}, {text}, {level}, {type}, {object}, {time} y {count}.',
  },
}
