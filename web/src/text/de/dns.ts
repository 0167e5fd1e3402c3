import type { Text } from '..'

/** The form of a provider of the DNS challenge. */
export const dns: Text['dns'] = {
  provider: 'DNS-Anbieter',
  choose: 'Anbieter suchen',
  noProvider: 'Kein solcher Anbieter. Mit httpreq oder exec binden Sie einen eigenen an.',
  where: (name) => `Wo es sie gibt: ${name}`,
  notes: {
    'acme-dns': 'Registrieren Sie sich bei Ihrem acme-dns-Server und verweisen Sie mit _acme-challenge per CNAME darauf.',
    cloudflare: 'Erstellen Sie ein Token mit den Rechten Zone: Read und DNS: Edit für die Zone.',
    dnsimple: 'Ein Token des Kontos, nicht des Benutzers.',
    duckdns: 'Eine Domain hat einen TXT-Eintrag, daher läuft nur eine Bestellung zur selben Zeit.',
    exec: 'Führt den Befehl unten mit present NAME WERT aus, später mit cleanup NAME WERT.',
    gandi: 'Ein persönliches Zugriffstoken mit Zugriff auf LiveDNS.',
    godaddy: 'GoDaddy bietet die API nur Konten mit mehreren Domains.',
    google: 'Der Inhalt der JSON-Schlüsseldatei. Das Dienstkonto braucht die Rolle DNS-Administrator.',
    hetzner: 'Ein Token mit Lese- und Schreibrecht für das Cloud-Projekt, das die Zone enthält.',
    httpreq: 'headgate sendet POST /present und /cleanup mit fqdn und value an diesen Dienst.',
    ionos: 'Präfix und Geheimnis des Schlüssels, durch einen Punkt verbunden.',
    linode: 'Ein Token mit dem Bereich domains:read_write.',
    namecheap: 'Die Client-IP ist die bei Namecheap erlaubte Adresse dieses Rechners. Jede Änderung schreibt alle Einträge der Domain neu.',
    netcup: 'Die Nameserver brauchen bis zu 15 Minuten: Setzen Sie propagation auf 30m.',
    ovh: 'Ein Schlüssel mit den Rechten GET, POST und DELETE für /domain/zone/*.',
    porkbun: 'Aktivieren Sie auch den API-Zugriff für die Domain.',
    rfc2136: 'Ein Nameserver, der dynamische Aktualisierungen annimmt.',
    route53: 'Ein Zugriffsschlüssel mit route53:ListHostedZonesByName, ListResourceRecordSets, ChangeResourceRecordSets und GetChange.',
    vultr: 'Erlauben Sie die Adresse dieses Rechners in der Zugriffskontrolle des Schlüssels.',
  },
}
